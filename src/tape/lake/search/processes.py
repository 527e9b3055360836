"""Searches through history for a server that never loads Spark: each is a process that is watched until its end."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL
from time import time
from typing import Any, Final, NoReturn

import anyio
import msgspec
from anyio import to_thread

from tape.core.background import background
from tape.core.errors import LimitReached, NotReady, UsageError
from tape.core.search import Findings, Search, SearchKind, SearchOrder, SearchState
from tape.lake.java import find_java
from tape.lake.lazy_reader import check_installed
from tape.lake.session import check_master, chosen_master
from tape.lake.spark_settings import declared
from tape.telemetry import log
from tape.work.child_process import open_child

MOST_S: Final = 3600.0
REMEMBERED: Final = 64
MOST_LINE: Final = 4 << 20
GRACE_S: Final = 5.0
UNHEARD: Final = "its process could not be started or heard; the server's log says more"
BROKEN: Final = (OSError, ValueError, msgspec.MsgspecError)
COMMAND: Final = (sys.executable, "-P", "-m", "tape.search_process")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Where searches search, and what Spark needs for it."""

    store: str
    lake: Path
    folder: Path
    master: str
    command: Sequence[str] = COMMAND
    most_s: float = MOST_S

    def check(self) -> None:
        """Refuses where Spark cannot run, and says what to install."""
        check_installed()
        if find_spec("pyspark") is None:
            raise UsageError("this needs the package pyspark; install tape-bus[spark]")
        check_master(self.master)
        if not chosen_master(declared(os.environ), self.master).startswith("sc://"):
            find_java(os.environ)

    def order(self, search: Search, after: int, through: int | None) -> SearchOrder:
        return SearchOrder(
            kind=search.kind,
            reaction_id=search.reaction_id,
            after=after,
            through=through,
            store=self.store,
            lake=str(self.lake),
            folder=str(self.folder),
            master=self.master,
        )


@dataclass(slots=True, eq=False)
class RunningSearch:
    """A search that is under way, and what ends it."""

    search: Search
    order: SearchOrder
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Searches:
    """At most one at a time, so long at most; what was found is kept for as long as the server runs."""

    def __init__(self, ground: SearchConfig) -> None:
        self._ground = ground
        self._watch: RunningSearch | None = None
        self._begun: asyncio.Queue[RunningSearch] = asyncio.Queue()
        self._found: dict[str, dict[SearchKind, Search]] = {}

    async def begin(self, kind: SearchKind, reaction_id: str, after: int = 0, through: int | None = None) -> Search:
        await to_thread.run_sync(self._ground.check)
        if self._watch is not None:
            other = self._watch.search
            name = "dry run" if other.kind is SearchKind.DRY_RUN else "backfill"
            raise LimitReached(
                f"a {name} of {other.reaction_id!r} is under way, and there is one at a time; cancel it, or wait"
            )
        search = Search(kind=kind, reaction_id=reaction_id, started_at_ms=_now_ms())
        self._watch = RunningSearch(search, self._ground.order(search, after, through))
        self._keep(search)
        self._begun.put_nowait(self._watch)
        return search

    async def cancel(self, reaction_id: str) -> Search:
        """Ends it, and everything it has started; tasks that were made stay."""
        watch = self._watch
        if watch is None or watch.search.reaction_id != reaction_id:
            raise NotReady(f"nothing is searched for {reaction_id!r}")
        watch.scope.cancel()
        await watch.ended.wait()
        return watch.search

    def of(self, reaction_id: str) -> Mapping[SearchKind, Search]:
        return self._found.get(reaction_id, {})

    async def run(self) -> NoReturn:
        """Searches, one after another."""
        while True:
            watch = await self._begun.get()
            try:
                await self._see_through(watch)
            finally:
                self._watch = None
                watch.ended.set()

    async def _see_through(self, watch: RunningSearch) -> None:
        state, reason = SearchState.CANCELLED, ""
        with watch.scope, anyio.move_on_after(self._ground.most_s) as limit:
            try:
                state, reason = await self._watched(watch)
            except BROKEN as error:
                log.error("search.failed", reason=f"{type(error).__name__}: {error}")
                state, reason = (
                    SearchState.FAILED,
                    UNHEARD,
                )
        if limit.cancelled_caught:
            state, reason = (
                SearchState.FAILED,
                f"it took more than {self._ground.most_s:g} s; a command may take longer",
            )
        self._tell(watch, replace(watch.search, state=state, reason=reason, ended_at_ms=_now_ms()))
        log.info("search.ended", kind=watch.search.kind, reaction_id=watch.search.reaction_id, outcome=str(state))

    async def _watched(self, watch: RunningSearch) -> tuple[SearchState, str]:
        """How it ended; it is gone in any case."""
        async with open_child(self._ground.command, grace_s=GRACE_S, stderr=DEVNULL) as child:
            await child.write(json.dumps(asdict(watch.order)).encode() + b"\n")
            while line := await child.read_line(MOST_LINE):
                answer = json.loads(line)
                if ending := _ending(answer):
                    return ending
                self._tell(watch, replace(watch.search, findings=msgspec.convert(answer["findings"], Findings)))
        return SearchState.FAILED, "it was ended from outside, or the machine had no memory for it"

    def _tell(self, watch: RunningSearch, search: Search) -> None:
        watch.search = search
        self._keep(search)

    def _keep(self, search: Search) -> None:
        before = self._found.pop(search.reaction_id, {})
        self._found[search.reaction_id] = {**before, search.kind: search}
        while len(self._found) > REMEMBERED:
            del self._found[next(iter(self._found))]


@asynccontextmanager
async def open_searches(ground: SearchConfig) -> AsyncIterator[Searches]:
    """Searches that end with the block."""
    searches = Searches(ground)
    async with background(searches.run):
        yield searches


def _ending(said: dict[str, Any]) -> tuple[SearchState, str] | None:
    if "refused" in said:
        return SearchState.FAILED, str(said["refused"])
    if "broken" in said:
        log.error("search.failed", reason=said["broken"])
        return SearchState.FAILED, "Spark could not do it; the server's log and spark.log in its data folder say more"
    return (SearchState.DONE, "") if "done" in said else None


def _now_ms() -> int:
    return int(time() * 1000)
