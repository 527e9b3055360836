"""Checks who owns tables, views and functions with our names: those of another role are refused.

The owner of a table may add a trigger or a policy to it, and the owner of a schema may replace a table; both would run
as our role.
"""

import re
from collections.abc import Iterable
from typing import Final

import asyncpg

from tape.core.errors import UsageError
from tape.store.postgres.named import numbered
from tape.store.statements import statements

STEPS: Final = "tape_schema"
_CREATED: Final = re.compile(r"^CREATE (?:TABLE|VIEW|FUNCTION) (?:core\.)?(\w+)", re.MULTILINE)


def created(scripts: Iterable[str]) -> frozenset[str]:
    """The names of the tables, views and functions that these scripts create."""
    return frozenset(name for script in scripts for name in _CREATED.findall(script))


async def check_owners(connection: asyncpg.Connection, schema: str, names: Iterable[str]) -> None:
    """Refuses a schema, or anything in it with one of these names, that belongs to a role that we do not act as.

    The owner of the database and superusers are trusted, too. The search path has been pinned. Missing objects are
    created by a plain CREATE afterwards, which fails if another role has created one meanwhile.
    """
    sql = statements("postgres", "migrate.sql")["foreign"]
    text, values = numbered(sql, {"schema": schema, "names": [STEPS, *names]})
    found = await connection.fetchrow(text, *values)
    if found is not None:
        what, owner, role = found
        raise UsageError(
            f"{what} belongs to the role {owner}, whose code would run as {role}, or is no plain table; "
            f"remove it, or give it to {role} or to the owner of the database"
        )
