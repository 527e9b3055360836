"""Runs in the journal on the wire: records, details, comparisons and pages of entries."""

from dataclasses import replace
from typing import Any, Final, get_args

from tape.core.diff import DiffRow
from tape.core.event import Entry
from tape.core.event_page import EventPage
from tape.core.fork import Ancestor
from tape.core.ids import Epoch, RunId, Seq
from tape.core.ledger_diff import LedgerRow, Side, What
from tape.core.page import ANSWER_BYTES, Page, fit_answer
from tape.core.run import ClosedRun, ForkedRun, OpenedRun, RunRecord
from tape.core.run_detail import RunDetail
from tape.core.run_diff import RunDiff
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping
from tape.wire.messages.entries import entry_message, entry_value
from tape.wire.messages.ledgers import OBLIGATION, RUN
from tape.wire.pages import size

OPENED: Final = MessageMapping(OpenedRun, pb.OpenedRun)
CLOSED: Final = MessageMapping(ClosedRun, pb.ClosedRun)
FORKED: Final = MessageMapping(ForkedRun, pb.ForkedRun)
_RECORD: Final = MessageMapping(
    RunRecord, pb.RunRecord, within={"meta": NO_NAMES, "head": {"lineage": "mapped by record_message"}}
)


def record_message(record: RunRecord) -> pb.RunRecord:
    return _RECORD.message(record, lineage=[pb.RunAncestor(**each._asdict()) for each in record.head.lineage])


def record_value(message: pb.RunRecord) -> RunRecord:
    record = _RECORD.value(message)
    lineage = tuple(Ancestor(RunId(each.run_id), Seq(each.through_seq)) for each in message.lineage)
    return replace(record, head=replace(record.head, lineage=lineage))


def list_page(page: Page[RunRecord], _: Any) -> dict[str, Any]:
    return {"runs": map(record_message, page.rows), "next_cursor": page.next_cursor}


def list_page_value(message: pb.RunListPage) -> Page[RunRecord]:
    return Page([*map(record_value, message.runs)], message.next_cursor)


def detail(found: RunDetail, _: Any) -> dict[str, Any]:
    """The run with as many of its obligations as one answer carries."""
    ledger = None if found.ledger is None else RUN.message(found.ledger, seq_cursor=found.record.head.last_seq + 1)
    record = record_message(found.record)
    room = ANSWER_BYTES - record.ByteSize() - (0 if ledger is None else ledger.ByteSize())
    obligations = fit_answer(map(OBLIGATION.message, found.obligations), size, room)
    return {"record": record, "epoch": found.epoch, "ledger": ledger, "obligations": obligations}


def detail_value(message: pb.RunDetail) -> RunDetail:
    return RunDetail(
        record=record_value(message.record),
        epoch=Epoch(message.epoch),
        ledger=RUN.value(message.ledger) if message.HasField("ledger") else None,
        obligations=tuple(map(OBLIGATION.value, message.obligations)),
    )


def diff(found: RunDiff, _: Any) -> dict[str, Any]:
    return {
        "one": found.one,
        "other": found.other,
        "shared": found.shared,
        "places": found.places,
        "differing": found.differing,
        "entries": [pb.DiffedEntries(one=_entry(row.one), other=_entry(row.other)) for row in found.entries],
        "ledgers": [_ledger(row) for row in found.ledgers],
    }


def diff_value(message: pb.RunDiff) -> RunDiff:
    return RunDiff(
        one=RunId(message.one),
        other=RunId(message.other),
        shared=Seq(message.shared),
        places=message.places,
        differing=message.differing,
        entries=tuple(DiffRow(_entry_of(row, "one"), _entry_of(row, "other")) for row in message.entries),
        ledgers=tuple(map(_ledger_value, message.ledgers)),
    )


def event_page(page: EventPage, _: Any) -> dict[str, Any]:
    entries = map(entry_message, page.entries)
    return {"entries": entries, "next": page.next, "head": page.head, "closed": page.closed, "epoch": page.epoch}


def event_page_value(message: pb.EventPage) -> EventPage:
    return EventPage(
        entries=tuple(map(entry_value, message.entries)),
        next=Seq(message.next),
        head=Seq(message.head),
        closed=message.closed,
        epoch=Epoch(message.epoch),
    )


def _entry(entry: Entry | None) -> pb.EventEntry | None:
    return None if entry is None else entry_message(entry)


def _entry_of(row: pb.DiffedEntries, side: str) -> Entry | None:
    return entry_value(getattr(row, side)) if row.HasField(side) else None


def _ledger(row: LedgerRow) -> pb.DiffedLedger:
    one, other = (None if side is None else pb.DiffedSide(**side._asdict()) for side in (row.one, row.other))
    return pb.DiffedLedger(what=row.what, place=row.place, name=row.name, one=one, other=other)


def _ledger_value(message: pb.DiffedLedger) -> LedgerRow:
    one, other = (_side(getattr(message, side)) if message.HasField(side) else None for side in ("one", "other"))
    what = next(each for each in get_args(What) if each == message.what)
    return LedgerRow(what, message.place, message.name, one, other)


def _side(message: pb.DiffedSide) -> Side:
    return Side(message.status, message.request_json, message.response_json)
