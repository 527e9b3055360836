"""`tape run ls`: lists runs, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared

if TYPE_CHECKING:
    from tape.core.page import Page
    from tape.core.run import RunRecord
    from tape.operations.journal_runs import ListRuns

STATUSES: Final = ("open", "running", "stale", "complete")
ORDERS: Final = ("live", "newest", "oldest", "id")


class Time(click.ParamType[int]):
    """A time as ISO 8601, in UTC unless it names a zone; the value is in milliseconds."""

    name = "time"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            time = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time such as 2026-05-21 or 2026-05-21T10:00:00Z", param, ctx)
        return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


@click.command("ls")
@click.option("--status", type=click.Choice(STATUSES), help="Only those of one status.")
@click.option("--app", metavar="NAME", help="Only those of one app.")
@click.option("--label", metavar="TEXT", help="Only those with one label.")
@click.option("--prefix", metavar="TEXT", help="Only those whose ids begin with it.")
@click.option("--parent", metavar="RUN", help="Only forks of RUN.")
@click.option("--opened-after", metavar="TIME", type=Time(), help="Only those opened then or later.")
@click.option("--opened-before", metavar="TIME", type=Time(), help="Only those opened before.")
@click.option("--closed-after", metavar="TIME", type=Time(), help="Only those closed then or later.")
@click.option("--closed-before", metavar="TIME", type=Time(), help="Only those closed before.")
@click.option("--order", type=click.Choice(ORDERS), help="live: open ones first; else by time, or by id.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@click.option("--cursor", metavar="CURSOR", help="Go on where a page before ended.")
@shared
@click.pass_obj
def list_runs(choices: Choices, /, limit: int, **filters: Any) -> None:
    """List runs, open ones first unless filters or --order say otherwise."""
    page = finish(partial(_listed, choices, filters, limit))
    if choices.is_json:
        for record in page.rows:
            output.write_record(record)
    else:
        rows = ((_status(record), output.paint(record.run_id, "bold"), *_numbers(record)) for record in page.rows)
        is_filtered = any(value is not None for value in filters.values())
        none = "no run matches" if is_filtered else "there is nothing yet; tape publish RUN JSON --open begins a run"
        output.listing(rows, none)
    if page.next_cursor:
        output.note(f"there are more: --cursor {page.next_cursor}")


async def _listed(choices: Choices, filters: Mapping[str, Any], limit: int) -> Page[RunRecord]:
    """Runs up to the limit, of as many pages as it takes."""
    from tape.core.page import Page
    from tape.core.run_query import MAX_PAGE

    request = _request(filters)
    found: list[RunRecord] = []
    async with choices.open_operations(must_exist=True) as operations:
        while len(found) < limit:
            page = await operations.call(replace(request, limit=min(MAX_PAGE, limit - len(found))))
            found += page.rows
            request = replace(request, cursor=page.next_cursor)
            if not page.next_cursor:
                break
    return Page(found, request.cursor)


def _request(filters: Mapping[str, Any]) -> ListRuns:
    from tape.core.run_query import RunOrder, StatusFilter
    from tape.operations.journal_runs import ListRuns

    kinds: dict[str, Any] = {"status": StatusFilter, "order": RunOrder}
    given = {name: value for name, value in filters.items() if value is not None}
    return ListRuns(**{name: kinds[name](value) if name in kinds else value for name, value in given.items()})


def _status(record: RunRecord) -> str:
    colours = {"running": "green", "stale": "yellow", "complete": "dim"}
    return output.paint(record.status.value, colours[record.status.value])


def _numbers(record: RunRecord) -> tuple[str, str]:
    forked = f"from {record.head.lineage[-1].run_id}" if record.head.lineage else ""
    return output.count(record.head.last_seq, "event", "events"), output.escape(record.meta.label or forked)
