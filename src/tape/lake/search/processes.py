"""Runs searches for a server that never loads Spark: each is a child process, one at a time."""

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
NO_RESULT: Final = "its process could not be started or read; the server's log says more"
BROKEN: Final = (OSError, ValueError, msgspec.MsgspecError)
COMMAND: Final = (sys.executable, "-P", "-m", "tape.search_process")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """The store, lake and Spark settings of every search, and its time limit."""

    store: str
    lake: Path
    folder: Path
    master: str
    command: Sequence[str] = COMMAND
    most_s: float = MOST_S

    def check(self) -> None:
        """Raises UsageError where Spark cannot run; the message says what to install."""
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
    """A search in progress, and the scope that cancels it."""

    search: Search
    order: SearchOrder
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Searches:
    """Runs at most one search at a time; keeps findings until the server stops."""

    def __init__(self, config: SearchConfig) -> None:
        self._config = config
        self._running: RunningSearch | None = None
        self._queue: asyncio.Queue[RunningSearch] = asyncio.Queue()
        self._last: dict[str, dict[SearchKind, Search]] = {}

    async def begin(self, kind: SearchKind, reaction_id: str, after: int = 0, through: int | None = None) -> Search:
        await to_thread.run_sync(self._config.check)
        if self._running is not None:
            other = self._running.search
            name = "dry run" if other.kind is SearchKind.DRY_RUN else "backfill"
            raise LimitReached(
                f"a {name} of {other.reaction_id!r} is under way, and there is one at a time; cancel it, or wait"
            )
        search = Search(kind=kind, reaction_id=reaction_id, started_at_ms=_now_ms())
        self._running = RunningSearch(search, self._config.order(search, after, through))
        self._remember(search)
        self._queue.put_nowait(self._running)
        return search

    async def cancel(self, reaction_id: str) -> Search:
        """Kills the search and its child processes; tasks that it has made stay."""
        running = self._running
        if running is None or running.search.reaction_id != reaction_id:
            raise NotReady(f"nothing is searched for {reaction_id!r}")
        running.scope.cancel()
        await running.ended.wait()
        return running.search

    def of(self, reaction_id: str) -> Mapping[SearchKind, Search]:
        return self._last.get(reaction_id, {})

    async def run(self) -> NoReturn:
        """Runs the searches that `begin` has queued, one after another."""
        while True:
            running = await self._queue.get()
            try:
                await self._run_search(running)
            finally:
                self._running = None
                running.ended.set()

    async def _run_search(self, running: RunningSearch) -> None:
        state, reason = SearchState.CANCELLED, ""
        with running.scope, anyio.move_on_after(self._config.most_s) as limit:
            try:
                state, reason = await self._run_process(running)
            except BROKEN as error:
                log.error("search.failed", reason=f"{type(error).__name__}: {error}")
                state, reason = SearchState.FAILED, NO_RESULT
        if limit.cancelled_caught:
            state = SearchState.FAILED
            reason = f"it took more than {self._config.most_s:g} s; a command may take longer"
        self._update(running, replace(running.search, state=state, reason=reason, ended_at_ms=_now_ms()))
        log.info("search.ended", kind=running.search.kind, reaction_id=running.search.reaction_id, outcome=str(state))

    async def _run_process(self, running: RunningSearch) -> tuple[SearchState, str]:
        """Runs the child process; returns how it ended."""
        async with open_child(self._config.command, grace_s=GRACE_S, stderr=DEVNULL) as child:
            await child.write(json.dumps(asdict(running.order)).encode() + b"\n")
            while line := await child.read_line(MOST_LINE):
                message = json.loads(line)
                if ending := _ending(message):
                    return ending
                self._update(running, replace(running.search, findings=msgspec.convert(message["findings"], Findings)))
        return SearchState.FAILED, "it was ended from outside, or the machine had no memory for it"

    def _update(self, running: RunningSearch, search: Search) -> None:
        running.search = search
        self._remember(search)

    def _remember(self, search: Search) -> None:
        before = self._last.pop(search.reaction_id, {})
        self._last[search.reaction_id] = {**before, search.kind: search}
        while len(self._last) > REMEMBERED:
            del self._last[next(iter(self._last))]


@asynccontextmanager
async def open_searches(config: SearchConfig) -> AsyncIterator[Searches]:
    """Runs searches in the background until the block ends."""
    searches = Searches(config)
    async with background(searches.run):
        yield searches


def _ending(message: dict[str, Any]) -> tuple[SearchState, str] | None:
    if "refused" in message:
        return SearchState.FAILED, str(message["refused"])
    if "broken" in message:
        log.error("search.failed", reason=message["broken"])
        return SearchState.FAILED, "Spark could not do it; the server's log and spark.log in its data folder say more"
    return (SearchState.DONE, "") if "done" in message else None


def _now_ms() -> int:
    return int(time() * 1000)
