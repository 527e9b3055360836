"""Compares entries with what a test expects."""

from collections.abc import Mapping, Sequence
from difflib import ndiff
from typing import Any

from tape.core.event import Entry

ALWAYS = ("type", "payload")


def assert_entries(entries: Sequence[Entry], expected: Sequence[Mapping[str, Any]]) -> None:
    """Fails unless the entries are these, in this order; only the named fields are compared.

    The failure shows a diff.
    """
    if len(entries) == len(expected) and all(map(is_like, entries, expected)):
        return
    names = sorted({name for wanted in expected for name in wanted} or ALWAYS)
    wanted_lines = [_line(wanted, names) for wanted in expected]
    lines = [_line({name: getattr(entry, name) for name in names}, names) for entry in entries]
    shown = [line for line in ndiff(wanted_lines, lines) if not line.startswith("?")]
    raise AssertionError("\n".join(["the entries are others (- expected, + found):", *shown]))


def is_like(entry: Entry, wanted: Mapping[str, Any]) -> bool:
    """Whether an entry has these fields; a mapping in a payload may have more keys."""
    return all(_meets(getattr(entry, name), value) for name, value in wanted.items())


def _meets(found: object, wanted: object) -> bool:
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        return all(name in found and _meets(found[name], value) for name, value in wanted.items())
    return found == wanted


def _line(facts: Mapping[str, object], names: Sequence[str]) -> str:
    return "  ".join(f"{name}={facts[name]!r}" for name in names if name in facts)
