"""Options and helpers that the outbox commands share."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, run

if TYPE_CHECKING:
    from tape.store.outbox.table import OutboxTable

T = TypeVar("T")

SCHEMA = click.option("--schema", default="core", show_default=True, help="The schema of its tables.")
GENERATION = click.option("--generation", type=click.IntRange(0), help="The generation.  [default: TAPE_GENERATION]")


def url_of(choices: Choices) -> str:
    from tape.settings import Settings

    return choices.store or Settings.read(os.environ).outbox_url


def generation_of(given: int | None) -> int:
    from tape.settings import Settings

    return Settings.read(os.environ).generation if given is None else given


def with_table(choices: Choices, schema: str, use: Callable[[OutboxTable], Awaitable[T]]) -> T:
    from tape.core.errors import NotFound
    from tape.outbox.database import open_table

    url = url_of(choices)
    missing = NotFound(f"there is no outbox in the schema {schema!r}; tape outbox migrate creates one")

    async def with_open_table() -> T:
        if not may_have_outbox(url, schema):
            raise missing
        async with open_table(url, schema) as table:
            if not await table.is_there():
                raise missing
            return await use(table)

    return run(with_open_table)


def may_have_outbox(url: str, schema: str = "core") -> bool:
    """Whether an outbox may be opened: a file without one would be changed by that, and a missing one is an error."""
    from urllib.parse import urlsplit

    from tape.core.errors import UsageError
    from tape.store.sqlite.location import Location
    from tape.store.sqlite.outbox import has_outbox

    location = Location.parse(url, unsafe_durability=True) if urlsplit(url).scheme == "sqlite" else None
    if location is None or location.path is None:
        return True
    path = location.path
    if not path.exists():
        raise UsageError(f"there is no file {str(path)!r}; see --store and TAPE_OUTBOX_URL, or run tape outbox migrate")
    location.refuse_folder()
    return has_outbox(path, schema)


def print_result(choices: Choices, fields: dict[str, object], sentence: str) -> None:
    if choices.is_json:
        output.write_json(fields)
    else:
        output.write(sentence)
