"""`tape outbox`: migrates an outbox, lists and replays its rows, and applies its retention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from getpass import getuser
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared
from tape.cli.outbox.contracts import contracts
from tape.cli.outbox.growth import partition, relay
from tape.cli.outbox.options import GENERATION, SCHEMA, generation_of, print_result, url_of, with_table
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from datetime import timedelta

    from tape.core.outbox import DeliveryState, OutboxRecord, OutboxRetention
    from tape.store.outbox.table import OutboxTable, RowFilter

T = TypeVar("T")
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
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def list_records(
    choices: Choices, status: str | None, event_type: str, limit: int, generation: int | None, schema: str
) -> None:
    """List rows, newest first."""
    from tape.store.outbox.table import ANY_GENERATION, RowFilter

    matching: Any = {"status": status, "event_type": event_type}
    rows = RowFilter(generation=ANY_GENERATION if generation is None else generation, **matching)
    records = with_table(choices, schema, lambda table: table.listed(rows, limit))
    if choices.is_json:
        for record in records:
            output.write_json(_fields(record))
    else:
        output.listing(map(_row, records), "there is nothing like that in the outbox")


@outbox.command()
@click.argument("event_id", type=click.UUID, metavar="EVENT")
@SCHEMA
@shared
@click.pass_obj
def show(choices: Choices, event_id: UUID, schema: str) -> None:
    """Show a row, its deliveries and its past failures."""
    from tape.core.errors import NotFound

    found = with_table(choices, schema, lambda table: table.find(event_id))
    if found is None:
        raise NotFound(f"no row of the outbox is {str(event_id)!r}")
    record, deliveries = found
    if choices.is_json:
        output.write_json({**_fields(record), "deliveries": [state._asdict() for state in deliveries]})
    else:
        output.table((output.paint(name, "bold"), output.escape(text)) for name, text in _described(record, deliveries))


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
    from tape.store.outbox.table import ANY_GENERATION, RowFilter

    if failed == bool(event_ids):
        raise click.UsageError("name the events to replay, or use --failed")
    from_one = ANY_GENERATION if from_generation is None else from_generation
    selected = RowFilter(event_type=event_type, handler_name=handler_name, generation=from_one)
    target = generation_of(generation)
    count = with_table(choices, schema, lambda table: _replayed(table, event_ids, selected, target, replayed_by))
    print_result(choices, {"replayed": count}, f"{output.count(count, 'row is', 'rows are')} pending for {target}")


async def _replayed(
    table: OutboxTable, event_ids: tuple[UUID, ...], rows: RowFilter, target: int, replayed_by: str
) -> int:
    if event_ids:
        return len(await table.replay(event_ids, target, replayed_by))
    return await table.replay_failed(rows, target, replayed_by)


@outbox.command("hand-over")
@click.argument("retired", type=click.IntRange(0))
@GENERATION
@SCHEMA
@shared
@click.pass_obj
def hand_over(choices: Choices, retired: int, generation: int | None, schema: str) -> None:
    """Move the rows of generation RETIRED that have not ended to another generation."""
    target = generation_of(generation)
    count = with_table(choices, schema, lambda table: table.hand_over(retired, target))
    print_result(
        choices, {"handed_over": count}, f"{output.count(count, 'row is', 'rows are')} handed over to {target}"
    )


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
    from tape.core.outbox import OutboxRetention

    settings: OutboxRetention = OutboxRetention(**spans)
    result = with_table(choices, schema, lambda table: table.retain(settings))
    print_result(
        choices,
        result._asdict(),
        f"{result.marked:,} marked, {result.deleted:,} deleted, {result.forgotten:,} keys forgotten",
    )


@outbox.command()
@SCHEMA
@shared
@click.pass_obj
def stats(choices: Choices, schema: str) -> None:
    """Print how many rows wait, since when, and how long deliveries take."""
    found = with_table(choices, schema, lambda table: table.stats())
    if choices.is_json:
        output.write_json({**found._asdict(), "advice": list(found.advice)})
        return
    output.table((output.paint(name, "bold"), f"{value:,}") for name, value in found._asdict().items())
    for advice in found.advice:
        output.note(advice)


def _fields(record: OutboxRecord) -> dict[str, object]:
    event = record.event
    return {
        "event_id": str(event.event_id),
        "event_type": event.event_type,
        "event_version": event.event_version,
        "occurred_at": event.occurred_at.isoformat(),
        "source": event.source,
        "target": event.target,
        "workspace_id": None if event.workspace_id is None else str(event.workspace_id),
        "content_class": event.content_class,
        "idempotency_key": event.idempotency_key,
        "trace_context": event.trace_context,
        "order_key": event.order_key,
        "payload": dict(event.payload),
        **{name: value for name, value in record._asdict().items() if name not in ("event", "position")},
    }


def _row(record: OutboxRecord) -> tuple[str, ...]:
    event = record.event
    return (
        output.paint(record.status, _COLOURS[record.status]),
        str(event.event_id),
        output.escape(event.event_type),
        f"gen {record.generation}",
        output.count(record.attempts, "attempt", "attempts"),
        output.escape(record.last_error or ""),
    )


def _described(record: OutboxRecord, deliveries: list[DeliveryState]) -> Iterator[tuple[str, str]]:
    for name, value in _fields(record).items():
        if value not in (None, []):
            yield name, json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
    for state in deliveries:
        error = f": {state.last_error}" if state.last_error else ""
        yield state.handler_name, f"{state.status} after {output.count(state.attempts, 'attempt', 'attempts')}{error}"
