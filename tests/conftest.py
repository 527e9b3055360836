"""What all tests share: the amount of work, the division among worker processes, and the event loop."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

if TYPE_CHECKING:
    from tests.parallel import FileScheduling

ROOT = Path(__file__).resolve().parent.parent
IN_MEMORY = "/dev/shm"  # where a sync costs nothing; processes are killed, but no test cuts the power
ROOM = 6 << 30
EXAMPLES = 100
QUICK_EXAMPLES = 20

pytest_plugins = ["tests.servers.fixtures", "tests.servers.spark"]

Scale = Callable[[float], int]


def is_roomy(folder: str) -> bool:
    """Whether tests have room in a folder, and may run programs there."""
    if not os.access(folder, os.W_OK) or os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return False
    return min(shutil.disk_usage(folder).free, psutil.virtual_memory().available) > ROOM


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scale", type=float, default=1.0, help="how much more work than usual to do (20 is a soak)")
    parser.addoption("--quick", action="store_true", help="skip tests that need a database server, Java or a browser")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--scale") <= 1 and is_roomy(IN_MEMORY):  # a soak meets the disk
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", IN_MEMORY)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a background job ignores SIGINT, and so would our children
    settings.register_profile(
        "tape",
        max_examples=scaled(QUICK_EXAMPLES if config.getoption("--quick") else EXAMPLES, config.getoption("--scale")),
        deadline=None,  # a busy machine is slow, not wrong
        suppress_health_check=[HealthCheck.too_slow],
        database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
        print_blob=True,
    )
    settings.load_profile("tape")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    from tests.parallel import FileScheduling

    config.option.loadscopereorder = False  # `pytest_collection_modifyitems` has put them in order
    return FileScheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from tests.parallel import rank

        items.sort(key=lambda item: rank(item.nodeid))


def pytest_collection_finish() -> None:
    gc.freeze()  # modules and collected tests stay: a collection of garbage need not look at them each time


def pytest_unconfigure() -> None:
    gc.unfreeze()


def scaled(amount: float, factor: float) -> int:
    return max(1, round(amount * factor))


@pytest.fixture(scope="session")
def scale(pytestconfig: pytest.Config) -> Scale:
    """Turns the usual amount of work into the amount asked for."""
    factor: float = pytestconfig.getoption("--scale")
    return lambda amount: scaled(amount, factor)


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": False}


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """A command that logs to stderr does so in its own test only: the next one has another stderr."""
    logger = logging.getLogger("tape")
    before = logger.handlers, logger.propagate, logger.level
    yield
    logger.handlers, logger.propagate = before[:2]
    logger.setLevel(before[2])
