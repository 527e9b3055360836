"""Values as SQL text, for the one message that must carry an append and its COMMIT together."""

from collections.abc import Sequence

from tape.core.errors import UsageError


def literal(value: object) -> str:
    """A value as Postgres reads it; text cannot hold NUL, so quoting is all that is needed."""
    match value:
        case None:
            return "NULL"
        case bool() | int():
            return str(value)
        case str():
            return quoted(value)
        case bytes():
            return f"'\\x{value.hex()}'::bytea"
        case list() | tuple():
            return f"ARRAY[{', '.join(map(literal, value))}]"
        case _:
            raise UsageError(f"no literal for {type(value).__name__}")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def call(function: str, types: Sequence[str], arguments: Sequence[object]) -> str:
    """A call with every argument given its type, because an empty array has none of its own."""
    given = (f"{literal(value)}::{type_}" for value, type_ in zip(arguments, types, strict=True))
    return f"{function}({', '.join(given)})"
