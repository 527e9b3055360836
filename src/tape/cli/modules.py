"""Modules of the user's, which a command is given the names of."""

import sys
from importlib import import_module


def load(*names: str) -> None:
    """Imports them; whatever is wrong with one is for its owner to read."""
    from tape.core.errors import UsageError, quoted

    for name in names:
        try:
            import_module(name)
        except Exception as error:  # it is the user's module, and whatever is wrong with it is for the user
            raise UsageError(f"module {quoted(name)} cannot be loaded: {type(error).__name__}: {error}") from error


def look_here(names: tuple[str, ...]) -> None:
    """Modules are looked for where the command was typed, too, as `python -m` does."""
    if names and "" not in sys.path:
        sys.path.insert(0, "")
