"""Runs in the journal on the wire: records, details, comparisons and pages of entries."""

from typing import Any, Final

from tape.core.diff import DiffRow
from tape.core.event import Entry
from tape.core.event_page import EventPage
from tape.core.fork import Ancestor
from tape.core.ledger_diff import LedgerRow, Side
from tape.core.run import ClosedRun, ForkedRun, OpenedRun, RunRecord
from tape.core.run_detail import RunDetail
from tape.core.run_diff import RunDiff
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping, use_codec
from tape.wire.messages.entries import entry_message, entry_value
from tape.wire.messages.ledgers import OBLIGATION, RUN

use_codec(Entry, entry_message, entry_value)
OPENED: Final = MessageMapping(OpenedRun, pb.OpenedRun)
CLOSED: Final = MessageMapping(ClosedRun, pb.ClosedRun)
FORKED: Final = MessageMapping(ForkedRun, pb.ForkedRun)
ANCESTOR: Final = MessageMapping(Ancestor, pb.RunAncestor)
RECORD: Final = MessageMapping(RunRecord, pb.RunRecord, within={"meta": NO_NAMES, "head": NO_NAMES})
DETAIL: Final = MessageMapping(RunDetail, pb.RunDetail)
EVENT_PAGE: Final = MessageMapping(EventPage, pb.EventPage)
SIDE: Final = MessageMapping(Side, pb.DiffedSide)
LEDGER_ROW: Final = MessageMapping(LedgerRow, pb.DiffedLedger)
ENTRIES: Final = MessageMapping(DiffRow, pb.DiffedEntries)
DIFF: Final = MessageMapping(RunDiff, pb.RunDiff)


def detail(found: RunDetail, _: Any) -> dict[str, Any]:
    ledger = None if found.ledger is None else RUN.message(found.ledger, seq_cursor=found.record.head.last_seq + 1)
    obligations = map(OBLIGATION.message, found.obligations)
    return {"record": RECORD.message(found.record), "epoch": found.epoch, "ledger": ledger, "obligations": obligations}
