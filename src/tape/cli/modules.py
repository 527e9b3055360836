"""Imports the modules that a user names."""

import sys
from importlib import import_module


def load(*names: str) -> None:
    """Imports the modules; an error is reported as the user's."""
    from tape.core.errors import UsageError, quoted

    for name in names:
        try:
            import_module(name)
        except Exception as error:  # the module is the user's, and so is its error
            raise UsageError(f"module {quoted(name)} cannot be loaded: {type(error).__name__}: {error}") from error


def look_here(names: tuple[str, ...]) -> None:
    """Also searches the current directory, as `python -m` does."""
    if names and "" not in sys.path:
        sys.path.insert(0, "")
