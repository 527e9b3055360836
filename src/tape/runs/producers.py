"""The producers that a process can run, and how they are loaded."""

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from tape.core.errors import UsageError, quoted
from tape.core.producer import Producer


class Producers:
    """Producers by unique name."""

    def __init__(self, producers: Iterable[Producer] = ()) -> None:
        self._by_name: dict[str, Producer] = {}
        for each in producers:
            if self._by_name.setdefault(each.name, each) != each:
                raise UsageError(f"two producers are called {each.name!r}")

    def find(self, name: str) -> Producer:
        found = self._by_name.get(name)
        if found is None:
            known = ", ".join(map(repr, sorted(self._by_name))) or "none"
            raise UsageError(f"there is no producer {quoted(name)} here; there are {known}")
        return found


def load(place: str) -> list[Producer]:
    """All producers of `module`, or the one that `module:name` names, which may be a plain function."""
    name, _, attribute = place.partition(":")
    module = load_module(name)
    if not attribute:
        found = [value for value in vars(module).values() if isinstance(value, Producer)]
        if not found:
            raise UsageError(f"module {quoted(name)} holds no producer; @tape.producer makes one of a function")
        return list(dict.fromkeys(found))
    return [_one(module, attribute)]


def _one(module: ModuleType, attribute: str) -> Producer:
    value = getattr(module, attribute, None)
    if isinstance(value, Producer):
        return value
    if not callable(value):
        raise UsageError(f"module {quoted(module.__name__)} has no producer {quoted(attribute)}")
    return Producer(attribute, value)


def load_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except Exception as error:  # the module is the user's, and so is its error
        raise UsageError(f"module {quoted(name)} cannot be loaded: {type(error).__name__}: {error}") from error
