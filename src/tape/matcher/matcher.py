"""The matcher: reads the journal once for all reactions and inserts a task for each match."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NoReturn, Protocol

import anyio
from anyio.lowlevel import checkpoint

from tape.core.errors import TapeError, Unavailable
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.matched import Recorded
from tape.core.ports import NO_EPOCH, Page, Store
from tape.core.registration import ReactionState
from tape.core.subject import Pattern
from tape.core.task import ClaimRequest, Task
from tape.matcher.match_batch import MatchBatch
from tape.matcher.rules import Clocks, Rules
from tape.telemetry import log
from tape.work.outages import Outage

SLICE_S: Final = 0.005
CATCH_UP_PAGES: Final = 4  # for each page of the caught-up reactions, so that the others reach them
PAUSE_S: Final = 0.5
REGISTRATIONS: Final = Pattern("/tape/reaction/**")


class EntryPages(Protocol):
    """The journal in pages; `wait` returns when there may be entries after a position."""

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...


class Slots(Protocol):
    """The slots of a worker in this process. `start` ends a reservation and runs the tasks that were claimed for it.

    `wait_for_slots` returns when that many slots are free, or after 50 ms.
    """

    async def wait_for_slots(self, count: int) -> None: ...
    def reserve(self) -> ClaimRequest | None: ...
    def start(self, request: ClaimRequest, tasks: Sequence[Task]) -> None: ...


class Matcher:
    """Matches the journal. Any number of matchers may run: the first that writes a page has matched it.

    It calls `on_new_tasks` when there may be pending tasks, which this or another matcher inserted. With `slots` it
    claims tasks as it inserts them, and starts them.
    """

    def __init__(
        self,
        store: Store,
        source: EntryPages | None = None,
        on_new_tasks: Callable[[], None] = lambda: None,
        clocks: Clocks | None = None,
        slots: Slots | None = None,
    ) -> None:
        self._slots = slots
        self._source = store.journal if source is None else source
        self._reactions = store.reactions
        self._on_new_tasks = on_new_tasks
        self._clocks = clocks
        self._rules = Rules(clocks)
        self._states: dict[str, ReactionState] = {}
        self._version = 0
        self._is_loaded = False
        self._cursor = GlobalSeq(0)
        self._epoch = NO_EPOCH
        self._group: tuple[Sequence[tuple[str, object]], Rules] = ((), self._rules)
        self._served = -1
        self._outage = Outage("matcher")
        self._ahead: tuple[GlobalSeq, Page] | None = None

    @property
    def states(self) -> Mapping[str, ReactionState]:
        """The reactions as of the last position that this matcher has read."""
        return self._states

    async def run(self) -> NoReturn:
        while True:
            try:
                is_at_head = not await self.step()
                self._outage.recovered()
                if is_at_head:
                    await self._source.wait(self._cursor)
            except Unavailable as error:
                self._reset()
                await self._outage.wait(error)
            except TapeError as error:  # the server in the same process goes on
                log.error("matcher.failed", code=error.code, reason=str(error))
                self._reset()
                await anyio.sleep(PAUSE_S)

    def _reset(self) -> None:
        """Drops everything in memory, so that the next step loads what is written."""
        self._update_states(dict.fromkeys(self._states))
        self._rules = Rules(self._clocks)
        self._group = ((), self._rules)
        self._version, self._is_loaded, self._ahead = 0, False, None

    async def step(self) -> bool:
        """Matches a page for the caught-up reactions and some for the others; False when nothing was left to read."""
        if not self._is_loaded:
            await self._load()
        has_moved = await self._match_caught_up()
        for _ in range(CATCH_UP_PAGES):
            if not await self._match_behind():
                return has_moved
            has_moved = True
        return has_moved

    async def _load(self) -> None:
        """Loads what other matchers have written since the version that this one knows."""
        written = await self._reactions.match_cursor(self._version)
        self._version, self._cursor, self._is_loaded = written.version, written.cursor, True
        self._update_states(written.states)

    async def _match_caught_up(self) -> bool:
        page = await self._next_page()
        if not self._is_loaded or page.scanned_to <= self._cursor:
            return not self._is_loaded
        batch = MatchBatch(self._rules, self._states, version=self._version, epoch=page.epoch, is_caught_up=True)
        reached = await _fill(batch, page.entries, page.scanned_to)
        if batch.is_empty and not self._rules:
            self._cursor = reached  # without reactions nothing needs to be written
        elif reached >= page.bounds.head:
            await self._record(batch, reached)
        else:
            await self._record_and_read(batch, reached)
        return True

    async def _record_and_read(self, batch: MatchBatch, reached: GlobalSeq) -> None:
        """Reads the next page while this one is written."""
        failure: TapeError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_ahead, reached)
            try:
                await self._record(batch, reached)
            except TapeError as error:
                failure = error  # raised below, and not in a group
        if failure is not None:
            raise failure

    async def _read_ahead(self, after: GlobalSeq) -> None:
        with suppress(TapeError):  # the next read raises it again
            self._ahead = after, await self._source.read(after)

    async def _next_page(self) -> Page:
        """The next page; without reactions, only the next registration."""
        if self._states:
            return await self._read(self._cursor)
        page = await self._read(self._cursor, REGISTRATIONS)
        first = page.entries[:1]
        return page._replace(entries=first, scanned_to=first[0].global_seq) if first else page

    async def _read(self, after: GlobalSeq, pattern: Pattern | None = None) -> Page:
        """Reads a page; after an epoch change everything in memory belongs to another journal and is dropped."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and pattern is None and ahead[0] == after:
            page = ahead[1]
        else:
            page = await self._source.read(after, pattern=pattern)
        if self._epoch not in (NO_EPOCH, page.epoch):
            self._reset()
        self._epoch = page.epoch
        return page

    async def _match_behind(self) -> bool:
        """Matches a page for the reactions at one cursor behind the others; takes such cursors in turn."""
        behind = {name: state for name, state in self._states.items() if _is_behind(state)}
        if not behind:
            return False
        cursor = self._next_cursor({state.cursor or 0 for state in behind.values()})
        group = {name: state for name, state in behind.items() if state.cursor == cursor}
        page = await self._read(GlobalSeq(cursor))
        if not self._is_loaded:
            return True
        batch = MatchBatch(self._group_rules(group), group, version=self._version, epoch=page.epoch, is_caught_up=False)
        through = min(page.scanned_to, self._cursor)
        reached = await _fill(batch, [entry for entry in page.entries if entry.global_seq <= through], through)
        if batch.changed:
            self._group = ((), self._rules)  # a reaction has left the group
        has_arrived = reached >= self._cursor
        moved = {name: state.joined() if has_arrived else state.reached(reached) for name, state in group.items()}
        batch.changed = {**moved, **batch.changed}
        await self._record(batch, self._cursor)
        return True

    def _next_cursor(self, cursors: Iterable[int]) -> int:
        ordered = sorted(cursors)
        self._served = next((cursor for cursor in ordered if cursor > self._served), ordered[0])
        return self._served

    def _group_rules(self, group: Mapping[str, ReactionState]) -> Rules:
        """The rules of a group, which are kept while the same reactions are in it."""
        members = [(name, state.versions) for name, state in group.items()]
        if self._group[0] != members:
            rules = Rules(self._clocks)
            for name, state in group.items():
                rules.add(name, state)
            self._group = members, rules
        return self._group[1]

    async def _record(self, batch: MatchBatch, cursor: GlobalSeq) -> None:
        recorded = await self._write(batch, cursor)
        if recorded is None:
            self._update_states({name: self._states.get(name) for name in batch.changed})
            self._group = ((), self._rules)
            await self._load()
        else:
            self._version, self._cursor = recorded.version, cursor
            self._update_states(batch.changed)
        if recorded is None or len(recorded.tasks) < len(batch.matches):
            self._on_new_tasks()

    async def _write(self, batch: MatchBatch, cursor: GlobalSeq) -> Recorded | None:
        request = None
        if self._slots is not None and batch.matches:
            await self._slots.wait_for_slots(len(batch.matches))
            request = self._slots.reserve()
        if self._slots is None or request is None:
            return await self._reactions.record(batch.page(cursor))
        tasks: Sequence[Task] = ()
        try:
            recorded = await self._reactions.record(batch.page(cursor, request))
            tasks = () if recorded is None else recorded.tasks
        finally:
            self._slots.start(request, tasks)
        return recorded

    def _update_states(self, states: Mapping[str, ReactionState | None]) -> None:
        for name, state in states.items():
            self._rules.update(name, state)
            if state is None:
                self._states.pop(name, None)
            else:
                self._states[name] = state


def _is_behind(state: ReactionState) -> bool:
    return state.is_matching and state.cursor is not None


async def _fill(batch: MatchBatch, entries: Sequence[Entry], scanned_to: GlobalSeq) -> GlobalSeq:
    """Matches entries until the batch is full; returns the last position. Lets other tasks run every SLICE_S."""
    began = time.perf_counter()
    for entry in entries:
        batch.add(entry)
        if batch.is_full:
            return entry.global_seq
        if time.perf_counter() - began > SLICE_S:
            await checkpoint()
            began = time.perf_counter()
    return scanned_to
