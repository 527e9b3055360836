"""Named parameters as asyncpg wants them: numbered."""

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
def numbered_names(sql: str) -> tuple[str, tuple[str, ...]]:
    """The statement with $1, $2, … and which parameter each of them is."""
    names = tuple(dict.fromkeys(_NAME.findall(sql)))
    return _NAME.sub(lambda found: f"${names.index(found[1]) + 1}", sql), names
