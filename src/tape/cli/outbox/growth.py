"""`tape outbox partition` and `tape outbox relay`: what to do with an outbox that has grown."""

from __future__ import annotations

from functools import partial

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared
from tape.cli.outbox.place import GENERATION, SCHEMA, generation_of, tell, url_of, with_table
from tape.cli.serve import log_to_stderr


@click.command()
@SCHEMA
@shared
@click.pass_obj
def partition(choices: Choices, schema: str) -> None:
    """Divide the table by time, a partition for each month.

    `tape doctor` says when it is time. It takes the table for a moment; afterwards retention makes the partitions to
    come, and so does this command.
    """
    made = with_table(choices, schema, lambda table: table.divide())
    tell(choices, {"made": made}, f"made {', '.join(made)}" if made else "the partitions to come are there already")


@click.command()
@click.option("--to", "target", required=True, metavar="TARGET", help="nats://…, redis-stream://… or any other target.")
@click.option("--handler", default="tape.relay", show_default=True, help="The name it is remembered by.")
@click.option("--once", is_flag=True, help="Only what there is now.")
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def relay(choices: Choices, target: str, handler: str, once: bool, generation: int | None, schema: str) -> None:
    """Relay events to another substrate, each in its envelope as it is.

    The target's host and secrets are in the file of TAPE_CONFIG. The first signal lets what was begun come to its end.
    """
    from tape.outbox.relay import RelayOptions, relay_outbox

    log_to_stderr()
    named = {"target": target, "handler_name": handler, "schema": schema}
    order = RelayOptions(url=url_of(choices), generation=generation_of(generation), **named)
    count = run(partial(relay_outbox, order, once))
    tell(choices, {"relayed": count}, f"{output.count(count, 'event', 'events')} relayed")
