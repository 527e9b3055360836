"""`tape migrate`: brings a store's schema up to date."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared

if TYPE_CHECKING:
    from tape.core.ids import Epoch


@click.command()
@click.option("--new-epoch", is_flag=True, help="Begin a new epoch, so that readers of a lost journal start over.")
@shared
@click.pass_obj
def migrate(choices: Choices, new_epoch: bool) -> None:
    """Bring the store's schema up to date and say what was applied.

    After a backup was restored, begin a new epoch before anybody writes.
    """
    applied, epoch = run(partial(_migrated, choices, new_epoch))
    if choices.is_json:
        output.write_json({"applied": list(applied), "epoch": epoch})
        return
    for step in applied:
        output.write(f"{output.paint('applied', 'green')}  {step}")
    if not applied:
        output.write("the schema is up to date")
    if new_epoch:
        output.write(f"the journal's epoch is {epoch}; cursors of another one start over")


async def _migrated(choices: Choices, is_new_epoch: bool) -> tuple[tuple[str, ...], Epoch]:
    async with choices.open_store() as store:
        return store.applied, await store.new_epoch() if is_new_epoch else store.epoch
