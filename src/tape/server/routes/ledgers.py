"""The ledgers over HTTP: signals for runs that wait, and what two runs decided and did."""

from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.diff import Row
from tape.core.errors import UsageError
from tape.core.event import Entry, check_run_id
from tape.core.ledger_diff import LedgerRow, compare_actions, read_actions
from tape.runs.ledgers import Ledgers
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.ledger_shapes import (
    DiffedEntry,
    DiffedLedger,
    DiffedRow,
    DiffedSide,
    NewSignal,
    RunDiff,
    SentSignal,
)
from tape.server.routes.shapes import shaped

MOST_ROWS: Final = 500


def ledgers_of(node: Node) -> Ledgers:
    if node.ledgers is None:
        raise UsageError("this store has no ledgers; serve a sqlite:///, postgresql:// or memory:// store")
    return node.ledgers


async def signal_run(request: Request, node: Node) -> Response:
    """Answers at a gate; a run that waits there may go on."""
    asked: NewSignal = shaped(await request.json(), NewSignal) if request.is_unread else NewSignal()
    sent = await ledgers_of(node).gates.send(
        request.values["run_id"], request.values["gate"], codec.encode(asked.resolution),
        request.header("idempotency-key"), Caller(trace=request.trace),
    )  # fmt: skip
    status = None if sent.run_status is None else sent.run_status.value
    return Response.json(SentSignal(accepted=sent.is_accepted, run_id=sent.run_id, run_status=status))


async def diff_runs(request: Request, node: Node) -> Response:
    """Where two runs part, and from there on what each says, what it decided and what it did."""
    one, other = check_run_id(request.values["run_id"]), check_run_id(request.values["other"])
    found = await node.journal.diff(one, other)
    rows: tuple[LedgerRow, ...] = ()
    if node.ledgers is not None:
        rows = compare_actions(await read_actions(node.ledgers, one), await read_actions(node.ledgers, other))
    return Response.json(
        RunDiff(
            one=one,
            other=other,
            shared=found.shared,
            places=len(found.rows),
            differing=len(found.differing),
            entries=[_entries(row) for row in found.differing[:MOST_ROWS]],
            ledgers=[_ledger(row) for row in rows[:MOST_ROWS]],
        )
    )


def _entries(row: Row) -> DiffedRow:
    return DiffedRow(one=_entry(row.one), other=_entry(row.other))


def _entry(entry: Entry | None) -> DiffedEntry | None:
    if entry is None:
        return None
    payload = None if entry.payload_json is None else entry.payload
    return DiffedEntry(seq=entry.seq, global_seq=entry.global_seq, kind=entry.kind, type=entry.type, payload=payload)


def _ledger(row: LedgerRow) -> DiffedLedger:
    one, other = (None if side is None else DiffedSide(*side) for side in (row.one, row.other))
    return DiffedLedger(what=row.what, place=row.place, name=row.name, is_same=row.is_same, one=one, other=other)
