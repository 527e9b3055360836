"""`tape outbox partition` and `tape outbox relay`: for an outbox that has grown large."""

from __future__ import annotations

from functools import partial

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared
from tape.cli.outbox.options import GENERATION, SCHEMA, call, generation_of, print_result, url_of
from tape.cli.serve import log_to_stderr


@click.command()
@SCHEMA
@shared
@click.pass_obj
def partition(choices: Choices, schema: str) -> None:
    """Partition the table by month.

    `tape doctor` tells when the table is large enough. The command locks the table for a moment. Later partitions are
    created by the retention, or by this command.
    """
    from tape.operations.outbox import PartitionOutbox

    made = call(choices, schema, PartitionOutbox()).made
    print_result(choices, {"made": list(made)}, f"made {', '.join(made)}" if made else "all partitions exist already")


@click.command()
@click.option("--to", "target", required=True, metavar="TARGET", help="nats://…, redis-stream://… or any other target.")
@click.option(
    "--handler", default="tape.relay", show_default=True, help="The handler name under which progress is stored."
)
@click.option("--once", is_flag=True, help="Relay what is due now, then exit.")
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def relay(choices: Choices, target: str, handler: str, once: bool, generation: int | None, schema: str) -> None:
    """Relay events to another broker or endpoint, each in its own envelope.

    The target's host and secrets are in the file of TAPE_CONFIG. On the first signal it finishes what it has claimed.
    """
    from tape.outbox.relay import RelayOptions, relay_outbox

    log_to_stderr()
    options = RelayOptions(
        url=url_of(choices),
        target=target,
        handler_name=handler,
        generation=generation_of(generation),
        schema=schema,
    )
    count = run(partial(relay_outbox, options, once))
    print_result(choices, {"relayed": count}, f"{output.count(count, 'event', 'events')} relayed")
