"""The commands that are derived from operations."""

from collections.abc import Iterator

from tape.operations.catalogue import OPERATIONS
from tools.docs.reference import commands


def derived_examples() -> Iterator[str]:
    """An example of each command that is made of an operation's definition, without the program's name."""
    made = {each.summary for each in OPERATIONS}
    for path, command, _ in commands():
        if command.help in made:
            yield (command.epilog or "").partition("Example:\n  tape ")[2] or " ".join(path)
