"""The lake that a command's options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tape.cli.choices import Choices

if TYPE_CHECKING:
    from tape.lake.log import DeltaLog


def log_of(choices: Choices) -> DeltaLog:
    """The log of the lake, which may not exist yet."""
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
