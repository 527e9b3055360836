"""`/runs/{run_id}/gates` and `/runs/{run_id}/diff`: signal a waiting run, and compare two runs."""

from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.diff import DiffRow
from tape.core.errors import UsageError
from tape.core.event import Entry, check_run_id
from tape.core.ledger_diff import LedgerRow, compare_actions
from tape.operations.gates import SendSignal
from tape.operations.run_actions import read_actions
from tape.runs.ledgers import Ledgers
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit, fit_beside
from tape.server.routes.ledger_schemas import (
    DiffedEntry,
    DiffedLedger,
    DiffedRow,
    DiffedSide,
    Name,
    NewSignal,
    RunDiff,
    SentSignal,
)
from tape.server.routes.parameters import IDEMPOTENCY_KEY, RUN_ID
from tape.server.routes.schemas import Id, parse_body

MAX_ROWS: Final = 500


def ledgers_of(node: Node) -> Ledgers:
    if node.ledgers is None:
        raise UsageError("this store has no ledgers; serve a sqlite:///, postgresql:// or memory:// store")
    return node.ledgers


async def signal_run(request: Request, node: Node) -> Response:
    """ResponseSpec at a gate; a run that waits there may go on."""
    signal: NewSignal = parse_body(await request.json(), NewSignal) if request.is_unread else NewSignal()
    sent = await ledgers_of(node).call(
        SendSignal(
            run_id=request.values["run_id"], gate=request.values["gate"],
            resolution_json=codec.encode(signal.resolution), key=request.header("idempotency-key"),
        ),
        Caller(trace=request.trace),
    )  # fmt: skip
    status = None if sent.run_status is None else sent.run_status.value
    return Response.json(SentSignal(accepted=sent.is_accepted, run_id=sent.run_id, run_status=status))


async def diff_runs(request: Request, node: Node) -> Response:
    """The first entries, decisions and effects in which two runs differ, as many as an answer carries."""
    one, other = check_run_id(request.values["run_id"]), check_run_id(request.values["other"])
    found = await node.journal.diff(one, other)
    rows: tuple[LedgerRow, ...] = ()
    if node.ledgers is not None:
        rows = compare_actions(await read_actions(node.ledgers, one), await read_actions(node.ledgers, other))
    entries = fit(_entries(row) for row in found.differing[:MAX_ROWS])
    return Response.json(
        RunDiff(
            one=one,
            other=other,
            shared=found.shared,
            places=len(found.rows),
            differing=len(found.differing),
            entries=entries,
            ledgers=fit_beside(map(_ledger, rows[:MAX_ROWS]), entries),
        )
    )


def _entries(row: DiffRow) -> DiffedRow:
    return DiffedRow(one=_entry(row.one), other=_entry(row.other))


def _entry(entry: Entry | None) -> DiffedEntry | None:
    if entry is None:
        return None
    payload = None if entry.payload_json is None else entry.payload
    return DiffedEntry(seq=entry.seq, global_seq=entry.global_seq, kind=entry.kind, type=entry.type, payload=payload)


def _ledger(row: LedgerRow) -> DiffedLedger:
    one, other = (None if side is None else DiffedSide(*side) for side in (row.one, row.other))
    return DiffedLedger(what=row.what, place=row.place, name=row.name, is_same=row.is_same, one=one, other=other)


_OTHER: Final = Parameter(name="other", location="path", schema=Id, description="The run to compare with.")
_GATE: Final = Parameter(name="gate", location="path", schema=Name, description="The gate that the run waits at.")

ROUTES: Final = (
    Route(
        method="POST", path="/runs/{run_id}/gates/{gate}", name="signalRun",
        summary="Send a signal to a gate; a run that waits there resumes", handler=respond_with(signal_run),
        parameters=(RUN_ID, _GATE, IDEMPOTENCY_KEY), body=NewSignal, is_body_required=False,
        response=ResponseSpec(schema=SentSignal), problems=(400, 404, 409, 413, 415, 429, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}/diff/{other}", name="diffRuns",
        summary="The entries, decisions and effects in which two runs differ",
        handler=respond_with(diff_runs), parameters=(RUN_ID, _OTHER), response=ResponseSpec(schema=RunDiff),
        problems=(400, 404, 410, 503),
    ),
)  # fmt: skip
