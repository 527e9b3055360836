"""Options and helpers that the outbox commands share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, run

if TYPE_CHECKING:
    from tape.operations.operation import OperationRequest

T = TypeVar("T")

SCHEMA = click.option("--schema", default="core", show_default=True, help="The schema of its tables.")
GENERATION = click.option("--generation", type=click.IntRange(0), help="The generation.  [default: TAPE_GENERATION]")


def url_of(choices: Choices) -> str:
    from tape.settings import Settings

    return choices.store or Settings.read(os.environ).outbox_url


def generation_of(given: int | None) -> int:
    from tape.settings import Settings

    return Settings.read(os.environ).generation if given is None else given


def call(choices: Choices, schema: str, request: OperationRequest[T]) -> T:
    """What the outbox answers, or the server of --store tape://host:port for its outbox."""
    from tape.compose import open_outbox_operations

    async def answer() -> T:
        async with open_outbox_operations(url_of(choices), schema) as operations:
            return await operations.call(request)
        raise AssertionError("unreachable")

    return run(answer)


def print_result(choices: Choices, fields: dict[str, object], sentence: str) -> None:
    if choices.is_json:
        output.write_json(fields)
    else:
        output.write(sentence)
