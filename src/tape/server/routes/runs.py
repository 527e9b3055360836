"""`/runs`: open one, list them, look at one, close it."""

import os
from collections.abc import Iterable
from itertools import chain
from typing import Final

import msgspec

from tape.core.errors import RunNotFound, UsageError, quoted
from tape.core.event import check_run_id
from tape.core.ids import SYSTEM_PREFIX, RunId
from tape.core.run import RunMeta, RunRecord
from tape.runs.cancelling import is_begun
from tape.server.http.refusals import NotNow
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.shapes import ClosedRun, LedgerRun, NewRun, OpenedRun, Run, RunDetail, Runs, shaped

MOST: Final = 1000


async def open_run(request: Request, node: Node) -> Response:
    """Opens a run; one that was closed goes on."""
    asked: NewRun = shaped(await request.json(), NewRun) if request.is_unread else NewRun()
    run_id = asked.run_id or f"run-{os.urandom(8).hex()}"
    meta = RunMeta(
        label=asked.label, started_at=asked.started_at, app=asked.app, user=asked.user, session=asked.session
    )
    await node.journal.open_run(run_id, meta)
    return Response.json(OpenedRun(run_id=run_id, epoch=node.journal.epoch), 201, location=f"/runs/{run_id}")


async def list_runs(request: Request, node: Node) -> Response:
    """Open runs first, then those that have ended; each once, whatever else is known of it."""
    limit = _limit(request.parameter("limit"))
    live = await node.runs.listed(is_open=True, limit=limit)
    ended = await node.runs.listed(is_open=False, limit=limit)
    kept = await node.cold.listed() if node.cold is not None else ()
    return Response.json(Runs(runs=_once(chain(live, ended, kept), limit)))


async def show_run(request: Request, node: Node) -> Response:
    record = await find(node, check_run_id(request.values["run_id"]))
    return Response.json(RunDetail.of_record(record, node.journal.epoch, await _ledger(node, record.run_id)))


async def close_run(request: Request, node: Node) -> Response:
    """Ends a run after everything appended before; closing it again changes nothing."""
    run_id = request.values["run_id"]
    last_seq = await node.journal.close_run(run_id)
    return Response.json(ClosedRun(run_id=run_id, status="complete", last_seq=last_seq))


async def find(node: Node, run_id: RunId) -> RunRecord:
    """What is known of a run, from the store or from its file; a file that is being written is not opened."""
    record = await node.runs.find(run_id) or await _kept(node, run_id)
    if record is None:
        raise RunNotFound(run_id)
    return record


async def _ledger(node: Node, run_id: RunId) -> LedgerRun | None:
    """What its ledger says of a run that was begun; one that was only opened has none."""
    if node.ledgers is None or not await is_begun(node.ledgers, run_id):
        return None
    run, unmet = await node.ledgers.runs.find(run_id), await node.ledgers.obligations.unmet(run_id)
    return msgspec.convert({**run.summary, "obligations": [each.summary for each in unmet]}, LedgerRun)


async def _kept(node: Node, run_id: RunId) -> RunRecord | None:
    if node.cold is None:
        return None
    if node.cold.is_being_written(run_id):
        raise NotNow(f"run {run_id!r} is still being written to its file; come back in a moment")
    return await node.cold.find(run_id)


def _limit(text: str | None) -> int:
    if text is None:
        return MOST
    if not (text.isascii() and text.isdecimal() and len(text) <= 5) or not 1 <= int(text) <= MOST:
        raise UsageError(f"limit is 1 to {MOST:,}, not {quoted(text)}")
    return int(text)


def _once(records: Iterable[RunRecord], limit: int) -> list[Run]:
    seen: dict[RunId, Run] = {}
    for record in records:
        if record.run_id not in seen and not record.run_id.startswith(SYSTEM_PREFIX):
            seen[record.run_id] = Run.of(record)
    return list(seen.values())[:limit]
