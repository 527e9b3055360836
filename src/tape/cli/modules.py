"""Imports the modules that a user names."""

import sys


def load(*names: str) -> None:
    """Imports the modules; an error is reported as the user's."""
    from tape.runs.producers import load_module

    for name in names:
        load_module(name)


def search_current_folder(names: tuple[str, ...]) -> None:
    """Also searches the current directory, as `python -m` does."""
    if names and "" not in sys.path:
        sys.path.insert(0, "")
