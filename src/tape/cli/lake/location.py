"""Which lake a command is about."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tape.cli.choices import Choices

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tape.lake.log import DeltaLog


def log_of(choices: Choices) -> DeltaLog:
    """The log of the lake, be it there or not."""
    from tape.lake.lazy_reader import TABLE, check_installed

    check_installed()
    from tape.lake.log import DeltaLog

    return DeltaLog(choices.lake_folder() / TABLE)


def existing(choices: Choices) -> DeltaLog:
    """The log of a lake that exists."""
    from tape.core.errors import NotFound

    log = log_of(choices)
    if not log.exists:
        raise NotFound(f"there is no lake at {str(log.table.parent)!r}; tape lake sync makes one")
    return log


def spark_opener() -> Callable[[], AbstractContextManager[SparkSession]]:
    """Opens the session that the settings ask for."""
    from tape.lake.session import open_spark

    return open_spark
