"""The line to one peer. While the peer takes nothing its messages wait here: that slows the bridge and nobody else."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

import anyio

from tape.bridges.connections import Connection
from tape.bridges.message import Message, message_of, of_task
from tape.bridges.target import Target
from tape.core.event import Entry
from tape.core.fork import Segment
from tape.core.ids import RunId, Seq
from tape.core.ports import Reader
from tape.core.task import Task
from tape.telemetry import log
from tape.work.answers import Dead, Release, Retry

FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 5.0


class Away(Exception):
    """The peer is not there or takes nothing now, which is nobody's fault; it may say for how long.

    After one that `is_lost` a new connection has to be made.
    """

    def __init__(self, reason: str, *, after_s: float | None = None, is_lost: bool = False) -> None:
        super().__init__(reason)
        self.after_s = after_s
        self.is_lost = is_lost


class Unanswered(Retry):
    """The peer was given the message and does not say what became of it: an attempt, wherever those are counted."""


class Peer(Protocol):
    """Whom messages are given to.

    When `send` returns, the peer has the message. It raises `Away` when nothing could be said, `Dead` with the peer's
    own reason when the message itself is refused, `Unanswered` when nothing is said of it, and anything else when
    another attempt may help.
    """

    async def send(self, topic: str, message: Message) -> None: ...
    async def close(self) -> None: ...


Connect = Callable[[], Awaitable[Peer]]


class Line:
    """One peer for many handlers: connected when the first message comes, and again when that was lost."""

    def __init__(self, connection: Connection, connect: Connect) -> None:
        self.connection = connection
        self.name = connection.name
        self._connect = connect
        self._peer: Peer | None = None
        self._connecting = anyio.Lock()
        self._is_stopping = anyio.Event()
        self._is_away = False

    def stop(self) -> None:
        """Nobody waits for the peer from now on: what it does not take at once is released, without an attempt."""
        self._is_stopping.set()

    async def send(self, topic: str, message: Message) -> None:
        """Returns when the peer has the message, however long it was away."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                await self._try(topic, message)
            except (Away, TimeoutError, OSError) as error:
                await self._note_absence(error)
                asked_s = error.after_s if isinstance(error, Away) else None
                await self._rest(pause_s * random.uniform(0.5, 1.0) if asked_s is None else asked_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                self._note_presence()
                return

    async def close(self) -> None:
        peer, self._peer = self._peer, None
        if peer is not None:
            with anyio.move_on_after(self.connection.deadline_s, shield=True):
                await peer.close()

    async def _try(self, topic: str, message: Message) -> None:
        with anyio.fail_after(self.connection.deadline_s):
            async with self._connecting:
                if self._peer is None:
                    self._peer = await self._connect()
            await self._peer.send(topic, message)

    async def _note_absence(self, error: Exception) -> None:
        if isinstance(error, Away) and error.is_lost:
            await self.close()
        if not self._is_away:
            self._is_away = True
            log.warning("bridge.away", connection=self.name, reason=f"{type(error).__name__}: {error}")

    def _note_presence(self) -> None:
        if self._is_away:
            self._is_away = False
            log.info("bridge.back", connection=self.name)

    async def _rest(self, pause_s: float) -> None:
        with anyio.move_on_after(min(pause_s, LONGEST_PAUSE_S)):
            await self._is_stopping.wait()
        if self._is_stopping.is_set():
            raise Release(f"the worker left while {self.name} was away")


@dataclass(frozen=True, slots=True)
class Sending:
    """The handler of one reaction's messages, for the one loop; content that is not JSON is read from the journal."""

    line: Line
    target: Target
    journal: Reader
    batch: int = 1
    timeout: timedelta | None = None  # each send has a deadline of its own, and a peer that is away is waited for

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        (task,) = tasks
        entry = None if task.payload_json else await self._entry(task)
        await self.line.send(self.target.topic, message_of(of_task(task, entry), self.line.connection.writes))
        return None

    async def _entry(self, task: Task) -> Entry:
        run_id, seq = RunId(task.source_run_id), Seq(task.source_seq)
        page = await self.journal.read_run(run_id, Seq(seq - 1), (Segment(run_id, seq, seq),))
        if not page.entries:
            raise Dead(f"entry {task.source_global_seq} is no longer in the journal, and its content is not JSON")
        return page.entries[0]
