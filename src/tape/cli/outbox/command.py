"""`tape outbox`: migrates an outbox, lists and replays its rows, and applies its retention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from getpass import getuser
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared
from tape.cli.outbox.contracts import contracts
from tape.cli.outbox.growth import partition, relay
from tape.cli.outbox.options import GENERATION, SCHEMA, call, print_result, url_of
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from datetime import timedelta

    from tape.core.outbox_record import OutboxRecord

STATUSES: Final = ("pending", "in_flight", "delivered", "failed")
MAX_LISTED: Final = 1_000
_COLOURS: Final = {"pending": "yellow", "in_flight": "cyan", "delivered": "green", "failed": "red"}


@click.group(no_args_is_help=False)
@shared
def outbox() -> None:
    """Operate an outbox: its rows, its dead letters, its retention, and its contracts.

    The outbox is at --store, else at TAPE_OUTBOX_URL.
    """


for command in (contracts, partition, relay):
    outbox.add_command(command)


@outbox.command()
@SCHEMA
@shared
@click.pass_obj
def migrate(choices: Choices, schema: str) -> None:
    """Create the tables of the outbox, or apply the missing migrations."""
    from tape.outbox.database import migrate as migrate_outbox

    applied = run(partial(migrate_outbox, url_of(choices), schema=schema))
    if choices.is_json:
        output.write_json({"applied": list(applied)})
    for step in () if choices.is_json else applied:
        output.write(f"{output.paint('applied', 'green')}  {step}")
    if not applied and not choices.is_json:
        output.write("the outbox is up to date")


@outbox.command("ls")
@click.option(
    "--status", type=click.Choice(STATUSES), help="Only rows with this status; failed rows are the dead letters."
)
@click.option("--type", "event_type", default="", help="Only events of this type.")
@click.option("--limit", type=click.IntRange(1, MAX_LISTED), default=50, show_default=True, help="How many at most.")
@click.option("--cursor", default="", metavar="CURSOR", help="Go on where a page before ended.")
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def list_records(
    choices: Choices, status: str | None, event_type: str, limit: int, cursor: str, generation: int | None, schema: str
) -> None:
    """List rows, newest first."""
    from tape.core.outbox import OutboxStatus
    from tape.operations.outbox import ListOutbox

    wanted = OutboxStatus(status) if status else None
    request = ListOutbox(status=wanted, event_type=event_type, generation=generation, limit=limit, cursor=cursor)
    page = call(choices, schema, request)
    if choices.is_json:
        for record in page.rows:
            output.write_record(record)
    else:
        output.listing(map(_row, page.rows), "there is nothing like that in the outbox")
    if page.next_cursor:
        output.note(f"there are more: --cursor {page.next_cursor}")


@outbox.command()
@click.argument("event_id", type=click.UUID, metavar="EVENT")
@SCHEMA
@shared
@click.pass_obj
def show(choices: Choices, event_id: UUID, schema: str) -> None:
    """Show a row, its deliveries and its past failures."""
    from tape.operations.outbox import GetOutboxEvent
    from tape.wire.result_json import plain

    detail = plain(call(choices, schema, GetOutboxEvent(event_id=event_id)))
    if choices.is_json:
        output.write_json({**detail["row"], "deliveries": detail["deliveries"]})
    else:
        output.table((output.paint(name, "bold"), output.escape(text)) for name, text in _described(**detail))


@outbox.command()
@click.argument("event_ids", type=click.UUID, metavar="[EVENT]...", nargs=-1)
@click.option("--failed", is_flag=True, help="Replay all dead letters that the other options select.")
@click.option("--type", "event_type", default="", help="With --failed: only events of this type.")
@click.option("--handler", "handler_name", default="", help="With --failed: only those that this handler failed.")
@click.option("--from-generation", type=click.IntRange(0), help="With --failed: only those of this generation.")
@click.option("--by", "replayed_by", default=getuser, help="Who replays; stored in the row's history.")
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def replay(
    choices: Choices,
    event_ids: tuple[UUID, ...],
    failed: bool,
    event_type: str,
    handler_name: str,
    from_generation: int | None,
    replayed_by: str,
    generation: int | None,
    schema: str,
) -> None:
    """Deliver ended rows again, except to handlers that have handled them."""
    from tape.operations.outbox import ReplayOutbox

    if failed == bool(event_ids):
        raise click.UsageError("name the events to replay, or use --failed")
    request = ReplayOutbox(
        event_ids=event_ids, event_type=event_type, handler_name=handler_name, from_generation=from_generation,
        generation=generation, replayed_by=replayed_by,
    )  # fmt: skip
    count = call(choices, schema, request).replayed
    print_result(choices, {"replayed": count}, f"{output.count(count, 'row is', 'rows are')} pending")


@outbox.command("hand-over")
@click.argument("retired", type=click.IntRange(0))
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def hand_over(choices: Choices, retired: int, generation: int | None, schema: str) -> None:
    """Move the rows of generation RETIRED that have not ended to another generation."""
    from tape.operations.outbox import HandOverOutbox

    count = call(choices, schema, HandOverOutbox(retired=retired, generation=generation)).handed_over
    print_result(choices, {"handed_over": count}, f"{output.count(count, 'row is', 'rows are')} handed over")


@outbox.command()
@click.option("--active", type=DurationType(), default="45d", show_default=True, help="How long an ended row is kept.")
@click.option(
    "--grace",
    type=DurationType(),
    default="7d",
    show_default=True,
    help="How long it stays marked before it is deleted.",
)
@click.option(
    "--handled-active", type=DurationType(), default="60d", show_default=True, help="The same for handled keys."
)
@click.option(
    "--handled-grace", type=DurationType(), default="7d", show_default=True, help="The grace period of handled keys."
)
@SCHEMA
@shared
@click.pass_obj
def retention(choices: Choices, /, schema: str, **spans: timedelta) -> None:
    """Mark old rows that have ended, and delete those marked for the grace period."""
    from tape.operations.outbox import RetainOutbox
    from tape.wire.result_json import plain

    result = call(choices, schema, RetainOutbox(**spans))
    sentence = f"{result.marked:,} marked, {result.deleted:,} deleted, {result.forgotten:,} keys forgotten"
    print_result(choices, plain(result), sentence)


@outbox.command()
@SCHEMA
@shared
@click.pass_obj
def stats(choices: Choices, schema: str) -> None:
    """Print how many rows wait, since when, and how long deliveries take."""
    from tape.operations.outbox import GetOutboxStats
    from tape.wire.result_json import plain

    found = plain(call(choices, schema, GetOutboxStats()))
    if choices.is_json:
        output.write_json(found)
        return
    output.table((output.paint(name, "bold"), f"{value:,}") for name, value in found.items() if name != "advice")
    for advice in found["advice"]:
        output.note(advice)


def _row(record: OutboxRecord) -> tuple[str, ...]:
    return (
        output.paint(record.status, _COLOURS[record.status]),
        str(record.event_id),
        output.escape(record.event_type),
        f"gen {record.generation}",
        output.count(record.attempts, "attempt", "attempts"),
        output.escape(record.last_error or ""),
    )


def _described(row: dict[str, Any], deliveries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        if value not in (None, []):
            yield name, json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    for state in deliveries:
        error = f": {state['last_error']}" if state["last_error"] else ""
        attempts = output.count(state["attempts"], "attempt", "attempts")
        yield state["handler_name"], f"{state['status']} after {attempts}{error}"
