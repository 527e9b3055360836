"""Builds Spark SQL text; every literal is quoted here, so that no user text is read as SQL."""

import re

NULL = "NULL"

_is_plain = re.compile(r"[A-Za-z0-9 _.,:/@<>$\[\]\"+-]*").fullmatch


def literal(value: bool | int | float | str) -> str:
    """A literal that Spark reads as this value under any setting for quotes and variables."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"({value}L)"
        case float():
            return cast(literal(repr(value)), "DOUBLE")
        case str():
            return f"'{value}'" if _is_plain(value) else cast(f"X'{value.encode().hex()}'", "STRING")


def call(function: str, *arguments: str) -> str:
    return f"{function}({', '.join(arguments)})"


def cast(value: str, kind: str) -> str:
    return f"CAST({value} AS {kind})"


def try_cast(value: str, kind: str) -> str:
    return f"TRY_CAST({value} AS {kind})"


def infix(left: str, operator: str, right: str) -> str:
    return f"({left} {operator} {right})"


def chain(operator: str, *values: str) -> str:
    return values[0] if len(values) == 1 else f"({f' {operator} '.join(values)})"


def negate(value: str) -> str:
    return f"(NOT {value})"


def is_null(value: str) -> str:
    return f"({value} IS NULL)"


def is_known(value: str) -> str:
    return f"({value} IS NOT NULL)"


def is_among(value: str, *choices: str) -> str:
    return f"({value} IN ({', '.join(choices)}))"


def case(*branches: tuple[str, str], otherwise: str = NULL) -> str:
    whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"(CASE {whens} ELSE {otherwise} END)"


def function(variable: str, body: str) -> str:
    """An anonymous function of one argument."""
    return f"{variable} -> {body}"
