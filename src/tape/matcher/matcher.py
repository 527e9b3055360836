"""The matcher: tails the journal once for all reactions and turns what they match into tasks."""

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
LATE_PAGES: Final = 4  # those who catch up are given more pages than the pack, so that they arrive
PAUSE_S: Final = 0.5
REGISTRATIONS: Final = Pattern("/tape/reaction/**")


class Source(Protocol):
    """The journal in pages; `wait` returns when what was read last may go on beyond a position."""

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page: ...
    async def wait(self, beyond: GlobalSeq) -> None: ...


class Slots(Protocol):
    """The slots of a worker in this process; each reservation is released by `start`, with what was claimed for it.

    `wait_for_slots` returns when so many are free, or after a moment.
    """

    async def wait_for_slots(self, count: int) -> None: ...
    def reserve(self) -> ClaimRequest | None: ...
    def start(self, request: ClaimRequest, tasks: Sequence[Task]) -> None: ...


class Matcher:
    """One of any number: whoever writes a page first has matched it, the others read on behind it.

    `on_new_tasks` is called when there may be new tasks, whoever has made them; what the hands request goes to them.
    """

    def __init__(
        self,
        store: Store,
        source: Source | None = None,
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
        """Which reactions there are, as far as this matcher has read."""
        return self._states

    async def run(self) -> NoReturn:
        while True:
            try:
                is_at_head = not await self.step()
                self._outage.recovered()
                if is_at_head:
                    await self._source.wait(self._cursor)
            except Unavailable as error:
                self._forget()
                await self._outage.wait(error)
            except TapeError as error:  # whoever serves beside it goes on serving
                log.error("matcher.failed", code=error.code, reason=str(error))
                await self._recover()

    async def _recover(self) -> None:
        """Begins again: what became of the last page is not known."""
        self._forget()
        await anyio.sleep(PAUSE_S)

    def _forget(self) -> None:
        """Trusts only what is written."""
        self._put(dict.fromkeys(self._states))
        self._rules = Rules(self._clocks)
        self._group = ((), self._rules)
        self._version, self._is_loaded, self._ahead = 0, False, None

    async def step(self) -> bool:
        """Matches a page of the pack and some of those behind it; False when there was nothing to read."""
        if not self._is_loaded:
            await self._load()
        has_moved = await self._match_pack()
        for _ in range(LATE_PAGES):
            if not await self._match_late():
                return has_moved
            has_moved = True
        return has_moved

    async def _load(self) -> None:
        """What others have written since the version that is known here."""
        pack = await self._reactions.match_cursor(self._version)
        self._version, self._cursor, self._is_loaded = pack.version, pack.cursor, True
        self._put(pack.states)

    async def _match_pack(self) -> bool:
        page = await self._next_page()
        if not self._is_loaded or page.scanned_to <= self._cursor:
            return not self._is_loaded
        draft = MatchBatch(self._rules, self._states, seen=self._version, epoch=page.epoch, is_pack=True)
        reached = await _drafted(draft, page.entries, page.scanned_to)
        if draft.is_empty and not self._rules:
            self._cursor = reached  # nobody is to be told, so nobody is
        elif reached >= page.bounds.head:
            await self._record(draft, reached)
        else:
            await self._record_and_read(draft, reached)
        return True

    async def _record_and_read(self, draft: MatchBatch, reached: GlobalSeq) -> None:
        """While a page is written, the next one is read: who is behind waits for one of both only."""
        failure: TapeError | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_ahead, reached)
            try:
                await self._record(draft, reached)
            except TapeError as error:
                failure = error  # it leaves as it came and not in a group
        if failure is not None:
            raise failure

    async def _read_ahead(self, after: GlobalSeq) -> None:
        with suppress(TapeError):  # it is asked for again, and then it says so
            self._ahead = after, await self._source.read(after)

    async def _next_page(self) -> Page:
        """Everything that follows; as long as there is no reaction, only the first that is registered."""
        if self._states:
            return await self._read(self._cursor)
        page = await self._read(self._cursor, REGISTRATIONS)
        first = page.entries[:1]
        return page._replace(entries=first, scanned_to=first[0].global_seq) if first else page

    async def _read(self, after: GlobalSeq, pattern: Pattern | None = None) -> Page:
        """A page. In another epoch the place it was to follow means nothing, nor does anything that is known here."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and pattern is None and ahead[0] == after:
            page = ahead[1]
        else:
            page = await self._source.read(after, pattern=pattern)
        if self._epoch not in (NO_EPOCH, page.epoch):
            self._forget()
        self._epoch = page.epoch
        return page

    async def _match_late(self) -> bool:
        """A page for those who are equally far behind; each time it is the turn of others."""
        behind = {name: state for name, state in self._states.items() if _is_behind(state)}
        if not behind:
            return False
        cursor = self._next({state.cursor or 0 for state in behind.values()})
        group = {name: state for name, state in behind.items() if state.cursor == cursor}
        page = await self._read(GlobalSeq(cursor))
        if not self._is_loaded:
            return True
        draft = MatchBatch(self._group_rules(group), group, seen=self._version, epoch=page.epoch, is_pack=False)
        through = min(page.scanned_to, self._cursor)
        reached = await _drafted(draft, [entry for entry in page.entries if entry.global_seq <= through], through)
        if draft.changed:
            self._group = ((), self._rules)  # somebody was left behind, and is no longer one of them
        has_arrived = reached >= self._cursor
        moved = {name: state.joined() if has_arrived else state.reached(reached) for name, state in group.items()}
        draft.changed = {**moved, **draft.changed}
        await self._record(draft, self._cursor)
        return True

    def _next(self, cursors: Iterable[int]) -> int:
        ordered = sorted(cursors)
        self._served = next((cursor for cursor in ordered if cursor > self._served), ordered[0])
        return self._served

    def _group_rules(self, group: Mapping[str, ReactionState]) -> Rules:
        """The rules of a group, made once as long as it stays together."""
        members = [(name, state.versions) for name, state in group.items()]
        if self._group[0] != members:
            rules = Rules(self._clocks)
            for name, state in group.items():
                rules.put(name, state)
            self._group = members, rules
        return self._group[1]

    async def _record(self, draft: MatchBatch, cursor: GlobalSeq) -> None:
        recorded = await self._written(draft, cursor)
        if recorded is None:
            self._put({name: self._states.get(name) for name in draft.changed})
            self._group = ((), self._rules)
            await self._load()
        else:
            self._version, self._cursor = recorded.version, cursor
            self._put(draft.changed)
        if recorded is None or len(recorded.tasks) < len(draft.matches):
            self._on_new_tasks()

    async def _written(self, draft: MatchBatch, cursor: GlobalSeq) -> Recorded | None:
        request = None
        if self._slots is not None and draft.matches:
            await self._slots.wait_for_slots(len(draft.matches))
            request = self._slots.reserve()
        if self._slots is None or request is None:
            return await self._reactions.record(draft.page(cursor))
        tasks: Sequence[Task] = ()
        try:
            recorded = await self._reactions.record(draft.page(cursor, request))
            tasks = () if recorded is None else recorded.tasks
        finally:
            self._slots.start(request, tasks)
        return recorded

    def _put(self, states: Mapping[str, ReactionState | None]) -> None:
        for name, state in states.items():
            self._rules.sort(name, state)
            if state is None:
                self._states.pop(name, None)
            else:
                self._states[name] = state


def _is_behind(state: ReactionState) -> bool:
    return state.is_matching and state.cursor is not None


async def _drafted(draft: MatchBatch, entries: Sequence[Entry], scanned_to: GlobalSeq) -> GlobalSeq:
    """How far a page was taken: to its end, or until the draft was full. Others get their turn meanwhile."""
    began = time.perf_counter()
    for entry in entries:
        draft.take(entry)
        if draft.is_full:
            return entry.global_seq
        if time.perf_counter() - began > SLICE_S:
            await checkpoint()
            began = time.perf_counter()
    return scanned_to
