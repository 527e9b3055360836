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

    async def with_open_table() -> T:
        async with open_table(url_of(choices), schema) as table:
            if not await table.is_there():
                raise NotFound(f"there is no outbox in the schema {schema!r}; tape outbox migrate creates one")
            return await use(table)

    return run(with_open_table)


def print_result(choices: Choices, fields: dict[str, object], sentence: str) -> None:
    if choices.is_json:
        output.write_json(fields)
    else:
        output.write(sentence)
