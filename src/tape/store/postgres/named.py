"""Named parameters as the numbers that asyncpg takes."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_NAME: Final = re.compile(r"(?<!:):([a-z_]+)")


def numbered(sql: str, parameters: Mapping[str, object]) -> tuple[str, list[object]]:
    """The statement with $1, $2, … and the values in that order."""
    text, names = numbered_names(sql)
    return text, [parameters[name] for name in names]


@cache
def numbered_names(sql: str, before: int = 0) -> tuple[str, tuple[str, ...]]:
    """The statement with numbered parameters, and their names; `before` of them belong to statements before it."""
    names = tuple(dict.fromkeys(_NAME.findall(sql)))
    return _NAME.sub(lambda found: f"${before + names.index(found[1]) + 1}", sql), names
