"""Functions by their names. A name is only ever compared with those that a program has registered, never imported."""

from collections.abc import Callable
from typing import Any

from tape.core.app import main_module
from tape.core.errors import UsageError


def reference(function: Callable[..., Any]) -> str:
    """The name of a function: its module, and where it is in there."""
    if "<" in function.__qualname__:
        raise UsageError(f"{function.__qualname__!r} has no name outside; define it at the top of a module")
    module = main_module() if function.__module__ == "__main__" else function.__module__
    return f"{module}:{function.__qualname__}"


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, whatever decorators made of it."""
    wrapped: Callable[..., Any] | None = getattr(function, "__wrapped__", None)
    return function if wrapped is None else unwrapped(wrapped)
