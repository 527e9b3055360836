"""The directory of runs."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from tape.core.errors import Conflict, RunNotFound, RunOpen
from tape.core.fork import Ancestor
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import Head, RunMeta, RunRecord
from tape.core.run_query import MAX_PAGE, RunPosition, RunQuery
from tape.store.redis.packing import rows_of
from tape.store.redis.scripts import CLOSE, CLOSE_SILENT, FIND, HEADS, LISTED, LISTED_BY_ID, OPEN, REAP, RENEW, Script
from tape.store.redis.server import Server

CHUNK: Final = 256  # a script stops Redis while it runs
SMALLEST_CHUNK: Final = 16


class Runs:
    """All runs, and which of them are open."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def open(self, run_id: RunId, meta: RunMeta, producer: str | None = None) -> Head:
        seen = self._server.data_set
        verdict, *found = await self._server.run(OPEN, run_id, seen.epoch, seen.head, producer or "", *_fields(meta))
        if verdict != b"done":
            raise RunOpen(run_id)
        head, epoch, last = found
        seen.observe(Epoch(int(epoch)), GlobalSeq(int(last)))
        return known_head(head)

    async def close(self, run_id: RunId) -> Head:
        return await self._change(CLOSE, run_id)

    async def reap(self, run_id: RunId) -> None:
        await self._change(REAP, run_id)

    async def renew(self, producer: str, run_ids: Sequence[RunId], *, adopts: bool = False) -> Sequence[RunId]:
        held = await self._server.run(RENEW, producer, int(adopts), *run_ids)
        return [RunId(run_id.decode()) for run_id in held]

    async def close_silent(self, silence: timedelta) -> Mapping[RunId, Head]:
        closed = await self._server.run(CLOSE_SILENT, silence // timedelta(milliseconds=1))
        return {RunId(run_id.decode()): known_head(head) for run_id, head in rows_of(closed, 2)}

    async def find(self, run_id: RunId) -> RunRecord | None:
        row = await self._server.ask(FIND, run_id)
        return None if row is None else _record(*row)

    async def listed(
        self, query: RunQuery, limit: int = MAX_PAGE, after: RunPosition | None = None
    ) -> Sequence[RunRecord]:
        found: list[RunRecord] = []
        position: RunPosition | None = after or query.start(0)
        chunk = min(CHUNK, max(limit, SMALLEST_CHUNK))
        while len(found) < limit and position is not None:
            records = await self._after(query, position, chunk)
            found += filter(query.matches, records)
            position = _end(query, position.section, records, is_full=len(records) == chunk)
        return found[:limit]

    async def _after(self, query: RunQuery, position: RunPosition, count: int) -> list[RunRecord]:
        """Runs of a section after a position, whether or not they match."""
        section = query.sections[position.section]
        if section.by == "id":
            rows = await self._server.ask(LISTED_BY_ID, position.run_id, query.prefix or "", count)
        else:
            name = "open" if section.by == "opened" and section.is_open else section.by
            way = "down" if section.is_descending else "up"
            rows = await self._server.ask(LISTED, name, way, position.at_ms, position.run_id, count)
        return [_record(*row) for row in rows]

    async def heads(self, run_ids: Sequence[RunId]) -> Mapping[RunId, Head]:
        rows = await self._server.ask(HEADS, *run_ids)
        found = zip(run_ids, map(head_of, rows), strict=True)
        return {run_id: head for run_id, head in found if head is not None}

    async def _change(self, script: Script, run_id: RunId) -> Head:
        verdict, *found = await self._server.run(script, run_id)
        if verdict == b"missing":
            raise RunNotFound(run_id)
        if verdict == b"open":
            raise RunOpen(run_id, "reap")
        if verdict == b"forked":
            raise Conflict(f"run {run_id!r} has {found[0]} living forks; reap them first")
        return known_head(*found)


def head_of(text: bytes | None) -> Head | None:
    """The head of a run, or None."""
    return None if text is None else known_head(text)


def known_head(text: bytes) -> Head:
    last, floor, opened, closed, content_type, *lineage = text.decode().split(" ")
    return Head(
        Seq(int(last)),
        None if closed == "-" else Seq(int(closed)),
        Seq(int(floor)),
        Seq(int(opened)),
        None if content_type == "-" else content_type,
        tuple(Ancestor(RunId(run_id), Seq(int(seq))) for run_id, seq in zip(lineage[::2], lineage[1::2], strict=True)),
    )


def _end(query: RunQuery, section: int, records: Sequence[RunRecord], *, is_full: bool) -> RunPosition | None:
    """Where the list continues after a chunk; None at its end."""
    if is_full:
        times = {"opened": records[-1].opened_at_ms, "closed": records[-1].closed_at_ms or 0, "id": 0}
        return RunPosition(section, times[query.sections[section].by], records[-1].run_id)
    return query.start(section + 1) if section + 1 < len(query.sections) else None


def _fields(meta: RunMeta) -> list[str]:
    fields = {"label": meta.label, "started": meta.started_at}
    fields |= {"app": meta.app, "user": meta.user, "session": meta.session}
    return [part for field, value in fields.items() if value is not None for part in (field, value)]


def _record(
    run_id: bytes,
    silent_ms: bytes | None,
    head: bytes,
    opened_at: bytes,
    closed_at: bytes | None,
    reaped_at: bytes | None,
    *meta: bytes | None,
) -> RunRecord:
    label, started_at, app, user, session = (None if text is None else text.decode() for text in meta)
    return RunRecord(
        run_id=RunId(run_id.decode()),
        meta=RunMeta(label=label, started_at=started_at, app=app, user=user, session=session),
        head=known_head(head),
        opened_at_ms=int(opened_at),
        closed_at_ms=None if closed_at is None else int(closed_at),
        is_reaped=reaped_at is not None,
        silent_ms=None if silent_ms is None else max(0, int(silent_ms)),
    )
