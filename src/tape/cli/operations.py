"""`tape operations`: all operations, and where each can be called."""

from __future__ import annotations

from functools import partial

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared


@click.command()
@shared
@click.pass_obj
def operations(choices: Choices) -> None:
    """List all operations, and where each can be called; of a server, those that it knows and gRPC carries."""
    from tape.operations.catalogue import ALL
    from tape.operations.surfaces import row_of

    rows = [row_of(each) for each in ALL]
    if choices.is_server():
        known = finish(partial(_procedures, choices.location()[0]))
        rows = [row for row in rows if row["grpc"] in known]
    if choices.is_json:
        output.write_json(rows)
    else:
        output.listing(((row["name"], row["verb"], row["cli"] or "", row["summary"]) for row in rows), "")


async def _procedures(url: str) -> frozenset[str]:
    from tape.sdk.remote.ledgers import connect_ledgers

    async with connect_ledgers(url) as ledgers:
        return await ledgers.procedures()
    raise AssertionError("unreachable")
