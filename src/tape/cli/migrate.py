"""`tape migrate`: brings a store's schema up to date."""

from functools import partial

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared


@click.command()
@shared
@click.pass_obj
def migrate(choices: Choices) -> None:
    """Bring the store's schema up to date and say what was applied."""
    applied = run(partial(_applied, choices))
    if choices.is_json:
        output.say_json({"applied": list(applied)})
        return
    for step in applied:
        output.say(f"{output.paint('applied', 'green')}  {step}")
    if not applied:
        output.say("the schema is up to date")


async def _applied(choices: Choices) -> tuple[str, ...]:
    async with choices.open_store() as store:
        return store.applied
