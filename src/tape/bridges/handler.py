"""The handler of a reaction that publishes to a peer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import anyio

from tape.bridges.message import fields_of_task, message_of
from tape.bridges.peer import PeerConnection
from tape.bridges.target import Target
from tape.core.event import Entry
from tape.core.fork import Segment
from tape.core.ids import RunId, Seq
from tape.core.ports import Reader
from tape.core.task import Task
from tape.work.answers import Dead


@dataclass(frozen=True, slots=True)
class BridgeHandler:
    """Sends the entry of each task; a payload that is not JSON is read from the journal."""

    peer: PeerConnection
    target: Target
    journal: Reader
    batch: int = 1
    timeout: timedelta | None = None  # each send has its own deadline, and an unavailable peer is waited for

    async def handle(self, tasks: Sequence[Task], threads: anyio.CapacityLimiter) -> object:
        (task,) = tasks
        entry = None if task.payload_json else await self._entry(task)
        await self.peer.send(self.target.topic, message_of(fields_of_task(task, entry), self.peer.config.body_format))
        return None

    async def _entry(self, task: Task) -> Entry:
        run_id, seq = RunId(task.source_run_id), Seq(task.source_seq)
        page = await self.journal.read_run(run_id, Seq(seq - 1), (Segment(run_id, seq, seq),))
        if not page.entries:
            raise Dead(f"entry {task.source_global_seq} is no longer in the journal, and its content is not JSON")
        return page.entries[0]
