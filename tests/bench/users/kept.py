"""What the sides of an area share: each is started when a side first needs it, and all end with the area."""

import atexit
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

T = TypeVar("T")

_stack = ExitStack()
_values: dict[str, Any] = {}


def keep(name: str, make: Callable[[], AbstractContextManager[T]]) -> T:
    """The value of that name, made now if this area has not made it before."""
    if name not in _values:
        _values[name] = _stack.enter_context(make())
    value: T = _values[name]
    return value


def release() -> None:
    """Ends everything that was kept."""
    _values.clear()
    _stack.close()


atexit.register(release)
