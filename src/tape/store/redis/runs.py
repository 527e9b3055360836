"""The directory of runs."""

from collections.abc import Mapping, Sequence

from tape.core.errors import RunNotFound, RunOpen
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import Head, LiveRun, RunMeta
from tape.store.redis.scripts import CLOSE, HEADS, LIVE, OPEN, REAP, Script
from tape.store.redis.server import Server


class Runs:
    """Which runs there are, and which of them are open."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def open(self, run_id: RunId, meta: RunMeta) -> Head:
        seen = self._server.data_set
        said = {"label": meta.label, "started": meta.started_at}
        fields = [part for field, value in said.items() if value is not None for part in (field, value)]
        verdict, *found = await self._server.tell(OPEN, run_id, seen.epoch, seen.head, *fields)
        if verdict != b"done":
            raise RunOpen(run_id)
        head, epoch, last = found
        seen.see(Epoch(int(epoch)), GlobalSeq(int(last)))
        return known_head(head)

    async def close(self, run_id: RunId) -> Head:
        return await self._change(CLOSE, run_id)

    async def reap(self, run_id: RunId) -> None:
        await self._change(REAP, run_id)

    async def live(self) -> Sequence[LiveRun]:
        rows = await self._server.ask(LIVE)
        return [_live(*row) for row in rows]

    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]:
        rows = await self._server.ask(HEADS, *run_ids)
        found = zip(run_ids, map(head_of, rows), strict=True)
        return {run_id: head for run_id, head in found if head is not None}

    async def _change(self, script: Script, run_id: RunId) -> Head:
        verdict, *found = await self._server.tell(script, run_id)
        if verdict == b"missing":
            raise RunNotFound(run_id)
        if verdict == b"open":
            raise RunOpen(run_id, "reap")
        return known_head(*found)


def head_of(text: bytes | None) -> Head | None:
    """Where a run stands, if there is one."""
    return None if text is None else known_head(text)


def known_head(text: bytes) -> Head:
    last, floor, opened, closed, content_type = text.decode().split(" ")
    return Head(
        Seq(int(last)),
        None if closed == "-" else Seq(int(closed)),
        Seq(int(floor)),
        Seq(int(opened)),
        None if content_type == "-" else content_type,
    )


def _live(run_id: bytes, head: bytes, label: bytes | None, started_at: bytes | None) -> LiveRun:
    return LiveRun(
        run_id=RunId(run_id.decode()),
        label=None if label is None else label.decode(),
        started_at=None if started_at is None else started_at.decode(),
        n_events=known_head(head).last_seq,
    )
