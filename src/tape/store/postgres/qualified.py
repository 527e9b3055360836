"""Puts the schema before our names, so that nothing is looked up along a search path.

If a search path has a schema in which other roles may create, their functions may run: of two functions with one name
Postgres takes the one whose types fit better, in whichever schema. So our connections search only pg_catalog.
"""

import re
from functools import cache
from typing import Final

from tape.store.postgres.owners import STEPS, created
from tape.store.statements import migrations

SEARCH_PATH: Final = "pg_catalog, pg_temp"
PIN: Final = f"SET LOCAL search_path = {SEARCH_PATH}"
_NAME: Final = re.compile(r"(?<![\w.\"'])tape_\w+")


@cache
def qualified(sql: str, schema: str) -> str:
    """The statement with qualified names; it must not contain values."""
    before = '"' + schema.replace('"', '""') + '".'
    return _NAME.sub(lambda found: before + found[0] if found[0] in _ours() else found[0], sql)


@cache
def _ours() -> frozenset[str]:
    return created(script for _, _, script in migrations("postgres")) | {STEPS}
