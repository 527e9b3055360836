"""The functions that undo effects, by name: a worker calls only those that its own program has registered."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from tape.core.text import check_name
from tape.sdk.durable.references import reference, unwrapped

Compensator = Callable[..., Any]
F = TypeVar("F", bound=Compensator)


class Compensators:
    """Functions by name; reloading a module replaces its functions."""

    def __init__(self) -> None:
        self._by_name: dict[str, Compensator] = {}

    def add(self, function: Compensator, name: str | None = None) -> str:
        """Registers a function and returns its name; the default name has the module and the function."""
        known_as = reference(function) if name is None else check_name("a compensator's name", name)
        self._by_name[known_as] = unwrapped(function)
        return known_as

    def known(self) -> Mapping[str, Compensator]:
        return dict(self._by_name)


compensators: Final = Compensators()
"""The functions that `@tape.effect(compensate=…)` and `@tape.compensator` have registered."""


def compensator(name: str | None = None) -> Callable[[F], F]:
    """Registers a function that undoes effects, for a program that does not declare the effects itself.

    An obligation names its compensator; without one its kind is the name. The function gets the effect's result and
    arguments.
    """

    def decorate(function: F) -> F:
        compensators.add(function, name)
        return function

    return decorate
