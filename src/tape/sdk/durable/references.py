"""Functions by their names, for processes that have never seen them."""

from collections.abc import Callable
from functools import reduce
from importlib import import_module
from typing import Any

from tape.core.errors import NotFound, UsageError, shown


def reference(function: Callable[..., Any]) -> str:
    """Where a function is found again: its module and its name there."""
    if "<" in function.__qualname__:
        raise UsageError(f"{function.__qualname__!r} has no name outside; define it at the top of a module")
    return f"{function.__module__}:{function.__qualname__}"


def resolve(text: str) -> Callable[..., Any]:
    """The function of that name, imported if need be."""
    module, colon, name = text.partition(":")
    try:
        found: Any = reduce(getattr, name.split("."), import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise NotFound(f"there is no function {shown(text)}: {error}") from error
    if not colon or not callable(found):
        raise NotFound(f"{shown(text)} is no function")
    return unwrapped(found)


def unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, whatever decorators made of it."""
    wrapped: Callable[..., Any] | None = getattr(function, "__wrapped__", None)
    return function if wrapped is None else unwrapped(wrapped)
