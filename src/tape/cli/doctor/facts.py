"""Prints a record's fields: times as times, and no empty fields."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import IntEnum

from tape.cli import output

AT = "_at_ms"


def write_facts(facts: Mapping[str, object]) -> None:
    """Prints a line for each field that has a value."""
    output.table((output.paint(name, "bold"), output.escape(text)) for name, text in _lines(facts))


def _lines(facts: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        match value:
            case None | "" | False:
                continue
            case IntEnum():
                yield name, value.name.lower()
            case int() if name.endswith(AT):
                yield name.removesuffix("_ms"), _time(value)
            case _:
                yield name, str(value)


def _time(ms: int) -> str:
    return "never" if not ms else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
