"""The event loop both sides of a comparison run on: uvloop when it is installed."""

import asyncio
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

T = TypeVar("T")

NAME = "uvloop" if find_spec("uvloop") else "asyncio"


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


def _factory() -> Callable[[], asyncio.AbstractEventLoop]:
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module(NAME).new_event_loop
    return factory
