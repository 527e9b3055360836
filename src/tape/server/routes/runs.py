"""`/runs` and `/forks`: open, list, show, close, cancel and fork runs."""

import os
from typing import Final

import msgspec

from tape.core.errors import RunNotFound
from tape.core.event import check_run_id
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId
from tape.core.run import RunActivity, RunMeta, RunRecord
from tape.operations.runs import GetRun
from tape.runs.cancellation import cancel, is_begun
from tape.runs.forks import ForkSpec
from tape.server.http.errors import ServerUnavailable
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit_beside
from tape.server.routes.parameters import RUN_ID
from tape.server.routes.run_lists import FILTERS, list_runs
from tape.server.routes.schemas import (
    ClosedRun,
    ForkedRun,
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
    run_id = new.run_id or f"run-{os.urandom(8).hex()}"
    meta = RunMeta(label=new.label, started_at=new.started_at, app=new.app, user=new.user, session=new.session)
    await node.journal.open_run(run_id, meta)
    return Response.json(OpenedRun(run_id=run_id, epoch=node.journal.epoch), 201, location=f"/runs/{run_id}")


async def show_run(request: Request, node: Node) -> Response:
    record = await find(node, check_run_id(request.values["run_id"]))
    return Response.json(RunDetail.of_record(record, node.journal.epoch, await _ledger(node, record.run_id)))


async def close_run(request: Request, node: Node) -> Response:
    """Closes a run after all earlier appends; closing it again changes nothing."""
    run_id = request.values["run_id"]
    last_seq = await node.journal.close_run(run_id)
    return Response.json(ClosedRun(run_id=run_id, status=RunActivity.COMPLETE, last_seq=last_seq))


async def cancel_run(request: Request, node: Node) -> Response:
    """Stops the producer or function of a run and closes it with an entry; an ended run is not changed."""
    run_id = check_run_id(request.values["run_id"])
    reason = "it was asked for"
    if node.ledgers is not None and await is_begun(node.ledgers, run_id):
        last_seq = await cancel(node.journal, node.ledgers, run_id, reason)
    else:
        last_seq = await node.forks.cancel(run_id, reason)
    return Response.json(ClosedRun(run_id=run_id, status=RunActivity.COMPLETE, last_seq=last_seq))


async def fork_run(request: Request, node: Node) -> Response:
    """Creates a child that can be streamed at once; its producer, if it has one, runs after the answer."""
    new: NewFork = parse_body(await request.json(), NewFork)
    spec = ForkSpec(
        at_seq=new.at_seq,
        mutation=new.mutation,
        n_turns=new.n_turns,
        producer=new.producer,
        effects=None if new.effects is None else EffectPolicy(new.effects),
        reason=new.reason,
    )
    parent = await find(node, check_run_id(new.parent_run_id))
    child = await node.forks.fork(parent, spec)
    return Response.json(ForkedRun(child_run_id=child, parent_run_id=parent.run_id, at_seq=new.at_seq))


async def find(node: Node, run_id: RunId) -> RunRecord:
    """The record of a run, from the store or from its cold file."""
    record = await node.runs.find(run_id) or await _find_cold(node, run_id)
    if record is None:
        raise RunNotFound(run_id)
    return record


async def _ledger(node: Node, run_id: RunId) -> LedgerRun | None:
    """The ledger of a run that was begun; a run that was only opened has none."""
    if node.ledgers is None or not await is_begun(node.ledgers, run_id):
        return None
    run, unmet = await node.ledgers.call(GetRun(run_id=run_id)), await node.ledgers.obligations.unmet(run_id)
    owed = fit_beside((each.summary for each in unmet), run.summary)
    return msgspec.convert({**run.summary, "obligations": owed}, LedgerRun)


async def _find_cold(node: Node, run_id: RunId) -> RunRecord | None:
    if node.cold is None:
        return None
    if node.cold.is_being_written(run_id):
        raise being_written(run_id)
    return await node.cold.find(run_id)


def being_written(run_id: RunId) -> ServerUnavailable:
    return ServerUnavailable(f"run {run_id!r} is still being written to its file; try again in a moment")


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
        handler=respond_with(cancel_run), parameters=(RUN_ID,), response=ResponseSpec(schema=ClosedRun),
        problems=(400, 404, 503),
    ),
    Route(
        method="POST", path="/forks", name="forkRun", summary="Fork a run at a seq",
        handler=respond_with(fork_run), body=NewFork, response=ResponseSpec(schema=ForkedRun),
        problems=(400, 404, 410, 413, 415, 429, 503),
    ),
)  # fmt: skip
