"""`tape operations`: all operations, and where each can be called."""

from __future__ import annotations

import click

from tape.cli import output
from tape.cli.choices import Choices, shared


@click.command()
@shared
@click.pass_obj
def operations(choices: Choices) -> None:
    """List all operations, and where each can be called."""
    from tape.operations.catalogue import ALL
    from tape.operations.surfaces import row_of

    rows = [row_of(each) for each in ALL]
    if choices.is_json:
        output.write_json(rows)
    else:
        output.listing(((row["name"], row["verb"], row["cli"] or "", row["summary"]) for row in rows), "")
