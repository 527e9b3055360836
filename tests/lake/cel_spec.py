"""The CEL specification's own cases, as predicates."""

import re
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.lake.expressions import is_registered

CASE = re.compile(r"^  test:? \{\n(.*?)^  \}", re.DOTALL | re.MULTILINE)
TEXT = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
EXPRESSION = re.compile(rf"expr: {TEXT}")
VALUE = re.compile(rf"^    value: \{{\s*(bool|int64|double|string|null)_value: ({TEXT}|\S+)\s*\}}", re.MULTILINE)
ELSEWHERE = re.compile(r"\b(bindings|type_env|container|disable_check|disable_macros)\b")


class Case(NamedTuple):
    """A predicate and its result: true, false, or None for an error."""

    text: str
    expected: bool | None


def cases(folder: Path) -> list[Case]:
    """Those that can be registered: without variables of their own, messages and types that Tape does not have."""
    found = (case for path in sorted(folder.glob("*.textproto")) for case in read(path.read_text()))
    return [case for case in dict.fromkeys(found) if is_registered(case.text)]


def read(source: str) -> Iterator[Case]:
    for block in CASE.findall(source):
        expression, value = EXPRESSION.search(block), VALUE.search(block)
        if expression is None or ELSEWHERE.search(block):
            continue
        text = unquoted(expression[1])
        if "eval_error" in block:
            yield Case(f"dyn({text}) == dyn(0)", None)
        elif value is not None:
            yield from as_predicate(text, value[1], value[2])


def as_predicate(text: str, kind: str, value: str) -> Iterator[Case]:
    match kind:
        case "bool":
            yield Case(text, value == "true")
        case "int64":
            yield Case(f"({text}) == {value}", True)
        case "string":
            yield Case(f"({text}) == {spelled(unquoted(value))}", True)
        case "double" if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", value):
            yield Case(f"({text}) == double('{value}')", True)
        case "null":
            yield Case(f"({text}) == null", True)
        case _:
            return


def unquoted(quoted: str) -> str:
    """Text of a text protobuf, whose octal and hexadecimal escapes are bytes of UTF-8."""
    quoted = re.sub(r"\\(.)", lambda found: "?" if found[1] == "?" else found[0], quoted)
    try:
        return quoted[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
    except UnicodeError:
        return str(literal_eval(quoted))


def spelled(text: str) -> str:
    return "'" + "".join(f"\\U{ord(character):08x}" for character in text) + "'"
