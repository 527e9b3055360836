"""Names of functions. A name is compared with registered ones and never imported."""

from collections.abc import Callable
from typing import Any

from tape.core.app import main_module
from tape.core.errors import UsageError


def reference(function: Callable[..., Any]) -> str:
    """A function's name: its module and qualified name."""
    if "<" in function.__qualname__:
        raise UsageError(f"{function.__qualname__!r} has no name outside; define it at the top of a module")
    module = main_module() if function.__module__ == "__main__" else function.__module__
    return f"{module}:{function.__qualname__}"


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its decorators."""
    wrapped: Callable[..., Any] | None = getattr(function, "__wrapped__", None)
    return function if wrapped is None else unwrapped(wrapped)
