"""`/runs` and `/forks`: open, list, show, close, cancel, reap, fork and compare runs."""

from typing import Final

import msgspec

from tape.core import codec, run, run_detail
from tape.core.caller import Caller
from tape.core.diff import DiffRow
from tape.core.event import Entry
from tape.core.fork_policy import EffectPolicy
from tape.core.ledger_diff import LedgerRow
from tape.operations.journal_runs import (
    CANCELLED,
    DIFF_ROWS,
    CancelRun,
    CloseRun,
    DiffRuns,
    ForkRun,
    OpenRun,
    ReapRun,
    ShowRun,
)
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit_beside
from tape.server.routes.ledger_schemas import DiffedEntry, DiffedLedger, DiffedRow, DiffedSide, RunDiff
from tape.server.routes.parameters import LIMIT, RUN_ID, limit_of
from tape.server.routes.run_lists import FILTERS, list_runs
from tape.server.routes.schemas import (
    Cancellation,
    ClosedRun,
    ForkedRun,
    Id,
    LedgerRun,
    NewFork,
    NewRun,
    OpenedRun,
    RunDetail,
    Runs,
    parse_body,
)


async def open_run(request: Request, node: Node) -> Response:
    """Opens a run, or reopens a closed one."""
    new: NewRun = parse_body(await request.json(), NewRun) if request.is_unread else NewRun()
    opened = await node.operations.call(OpenRun(**{**msgspec.structs.asdict(new), "run_id": new.run_id or ""}))
    body = OpenedRun(run_id=opened.run_id, epoch=opened.epoch)
    return Response.json(body, 201, location=f"/runs/{opened.run_id}")


async def show_run(request: Request, node: Node) -> Response:
    found = await node.operations.call(ShowRun(run_id=request.values["run_id"]))
    return Response.json(RunDetail.of_record(found.record, found.epoch, _ledger(found)))


async def close_run(request: Request, node: Node) -> Response:
    """Closes a run after all earlier appends; closing it again changes nothing."""
    return _closed(await node.operations.call(CloseRun(run_id=request.values["run_id"])))


async def cancel_run(request: Request, node: Node) -> Response:
    """Stops the producer or function of a run and closes it with an entry; an ended run is not changed."""
    given: Cancellation = parse_body(await request.json(), Cancellation) if request.is_unread else Cancellation()
    cancel = CancelRun(run_id=request.values["run_id"], reason=CANCELLED if given.reason is None else given.reason)
    return _closed(await node.operations.call(cancel, Caller(trace=request.trace)))


async def reap_run(request: Request, node: Node) -> Response:
    return _closed(await node.operations.call(ReapRun(run_id=request.values["run_id"])))


async def fork_run(request: Request, node: Node) -> Response:
    """Creates a child that can be streamed at once; its producer, if it has one, runs after the answer."""
    new: NewFork = parse_body(await request.json(), NewFork)
    fork = ForkRun(
        run_id=new.parent_run_id,
        at_seq=new.at_seq,
        mutation_json="" if new.mutation is None else codec.encode(new.mutation),
        n_turns=new.n_turns,
        producer=new.producer,
        effects=None if new.effects is None else EffectPolicy(new.effects),
        reason=new.reason,
    )
    child = await node.operations.call(fork)
    return Response.json(
        ForkedRun(child_run_id=child.child_run_id, parent_run_id=child.parent_run_id, at_seq=child.at_seq)
    )


async def diff_runs(request: Request, node: Node) -> Response:
    """The entries, decisions and effects in which two runs differ, as many as an answer carries."""
    one, other = request.values["run_id"], request.values["other"]
    found = await node.operations.call(DiffRuns(run_id=one, other=other, limit=limit_of(request, DIFF_ROWS)))
    return Response.json(
        RunDiff(
            one=found.one,
            other=found.other,
            shared=found.shared,
            places=found.places,
            differing=found.differing,
            entries=[_diffed(row) for row in found.entries],
            ledgers=[_diffed_ledger(row) for row in found.ledgers],
        )
    )


def _closed(found: run.ClosedRun) -> Response:
    return Response.json(ClosedRun(run_id=found.run_id, status=run.RunActivity.COMPLETE, last_seq=found.last_seq))


def _ledger(found: run_detail.RunDetail) -> LedgerRun | None:
    if found.ledger is None:
        return None
    summary = found.ledger.summary
    owed = fit_beside((each.summary for each in found.obligations), summary)
    return msgspec.convert({**summary, "obligations": owed}, LedgerRun)


def _diffed(row: DiffRow) -> DiffedRow:
    return DiffedRow(one=_diffed_entry(row.one), other=_diffed_entry(row.other))


def _diffed_entry(entry: Entry | None) -> DiffedEntry | None:
    if entry is None:
        return None
    payload = None if entry.payload_json is None else entry.payload
    return DiffedEntry(seq=entry.seq, global_seq=entry.global_seq, kind=entry.kind, type=entry.type, payload=payload)


def _diffed_ledger(row: LedgerRow) -> DiffedLedger:
    one, other = (None if side is None else DiffedSide(*side) for side in (row.one, row.other))
    return DiffedLedger(what=row.what, place=row.place, name=row.name, is_same=row.is_same, one=one, other=other)


_OTHER: Final = Parameter(name="other", location="path", schema=Id, description="The run to compare with.")

ROUTES: Final = (
    Route(
        method="POST", path="/runs", name="openRun", summary="Open a run", handler=respond_with(open_run),
        body=NewRun, is_body_required=False, response=ResponseSpec(status=201, schema=OpenedRun),
        problems=(400, 409, 413, 415, 503),
    ),
    Route(
        method="GET", path="/runs", name="listRuns", summary="List runs, open ones first unless filtered",
        handler=respond_with(list_runs), parameters=FILTERS, response=ResponseSpec(schema=Runs), problems=(400, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}", name="showRun", summary="Show a run",
        handler=respond_with(show_run), parameters=(RUN_ID,), response=ResponseSpec(schema=RunDetail),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/close", name="closeRun", summary="Close a run; its streams drain and end",
        handler=respond_with(close_run), parameters=(RUN_ID,), response=ResponseSpec(schema=ClosedRun),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/cancel", name="cancelRun",
        summary="Stop the producer or function of a run, and close the run",
        handler=respond_with(cancel_run), parameters=(RUN_ID,), body=Cancellation, is_body_required=False,
        response=ResponseSpec(schema=ClosedRun), problems=(400, 404, 413, 415, 503),
    ),
    Route(
        method="POST", path="/runs/{run_id}/reap", name="reapRun",
        summary="Reap a closed run: a bounded store deletes its entries, a durable one keeps them",
        handler=respond_with(reap_run), parameters=(RUN_ID,), response=ResponseSpec(schema=ClosedRun),
        problems=(400, 404, 409, 503),
    ),
    Route(
        method="GET", path="/runs/{run_id}/diff/{other}", name="diffRuns",
        summary="The entries, decisions and effects in which two runs differ",
        handler=respond_with(diff_runs), parameters=(RUN_ID, _OTHER, LIMIT), response=ResponseSpec(schema=RunDiff),
        problems=(400, 404, 410, 503),
    ),
    Route(
        method="POST", path="/forks", name="forkRun", summary="Fork a run at a seq",
        handler=respond_with(fork_run), body=NewFork, response=ResponseSpec(schema=ForkedRun),
        problems=(400, 404, 410, 413, 415, 429, 503),
    ),
)  # fmt: skip
