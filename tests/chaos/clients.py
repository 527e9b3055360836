"""The publishers and readers of the chaos: they reach servers through a balancer, and record the answers."""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import count
from pathlib import Path
from random import Random

import anyio

import tape
from tape.checker.lines import (
    AppendedEvent,
    AppendedPosition,
    AppendLine,
    EntryLine,
    GapLine,
    StreamLine,
)
from tape.core.codec import JsonValue
from tape.core.errors import TapeError, Unavailable
from tape.core.event import Event
from tape.sdk.client import AsyncClient
from tape.wire.frames import ClientEvicted, Delivered, Goaway, StateResyncRequired, StreamError
from tests.process.log import result_of
from tests.process.recorder import Recorder

ANSWER_S = 15.0
PAUSE_S = 0.1
RESTART_S = 0.2
PADDINGS = (0, 0, 16_384)  # sockets hold small events for a reader that has stopped reading, so that none is evicted
MAX_QUEUED = {"slow": 16}


def payload(event_id: str, chance: Random) -> JsonValue:
    return {"id": event_id, "padding": "x" * chance.choice(PADDINGS)}


class Clients:
    """What the clients share: where to record, what to count, and how far they are."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self.seen: Counter[str] = Counter()
        """How often something happened that a run must have, such as an eviction."""
        self.acknowledged: Counter[str] = Counter()
        self.asked = 0
        self.position: dict[str, int] = {}
        self.is_over = False

    def recorder(self, name: str) -> Recorder:
        return Recorder(self._folder / f"{name}.jsonl")

    async def publish(self, name: str, url: str) -> None:
        """Appends one request after the other, each again until it is acknowledged."""
        chance, records = Random(f"{self._seed} {name}"), self.recorder(name)
        async with tape.aconnect(url) as node:
            for number in count(1):
                if self.is_over:
                    return
                key = f"{name}-{number}"
                events = [
                    Event(run_id=name, payload=payload(f"{key}.{place}", chance), subject=f"/chaos/{name}")
                    for place in range(chance.randint(1, 3))
                ]
                self.asked += len(events)
                append = node.events.append
                while not await self._is_acknowledged(records, number, key, events, append):  # noqa: ASYNC110
                    await anyio.sleep(RESTART_S)
                self.acknowledged[name] += 1
                await anyio.sleep(PAUSE_S * chance.random())

    async def _is_acknowledged(
        self,
        records: Recorder,
        number: int,
        key: str,
        events: list[Event],
        append: Callable[..., Awaitable[list[tape.Entry]]],
    ) -> bool:
        asked = tuple(AppendedEvent(each.run_id, f"{key}.{place}", each.subject) for place, each in enumerate(events))
        records.write(AppendLine, number=number, step="invoke", key=key, events=asked)
        try:
            with anyio.fail_after(ANSWER_S):
                entries = await append(events, key=key, open=True)
        except (Unavailable, TimeoutError) as error:
            step = result_of(error) if isinstance(error, Unavailable) else "unknown"
            self.seen[f"{step} outcomes"] += 1
            records.write(AppendLine, number=number, step=step, reason=str(error))
            return False
        given = tuple(AppendedPosition(each.global_seq, each.seq) for each in entries)
        records.write(AppendLine, number=number, step="ok", positions=given, epoch=int(entries[0].epoch))
        return True

    async def follow_sse(self, name: str, url: str, run_id: str | None = None) -> None:
        """One stream of the journal or of a run, over as many connections as it takes."""
        records = self.recorder(name)
        records.write(StreamLine, number=1, step="invoke", run_id=run_id or "")
        async with AsyncClient(url) as client:
            start = {"from_global_seq": 0} if run_id is None else {"run_id": run_id, "from_seq": 1}
            async with client.events(**start, max_queued=MAX_QUEUED.get(name, 256)) as stream:
                while frames := await stream.batch():
                    for frame in frames:
                        self._take(records, frame, int(stream.cursor.epoch or 0))
        records.write(StreamLine, number=1, step="ok", run_id=run_id or "", reason="the run is closed")

    def _take(self, records: Recorder, frame: object, epoch: int) -> None:
        match frame:
            case Delivered():
                body = frame.payload.get("id", "") if isinstance(frame.payload, dict) else ""
                records.write(
                    EntryLine, number=1, run_id=frame.run_id, seq=frame.seq, global_seq=frame.global_seq, epoch=epoch,
                    event_id=str(body), subject=frame.subject,
                )  # fmt: skip
                self.position[records.client] = frame.global_seq
            case StateResyncRequired():
                self.seen["resyncs"] += 1
                records.write(GapLine, number=1, after=frame.earliest_available_id - 1, epoch=epoch)
            case ClientEvicted():
                self.seen["evictions"] += 1
            case Goaway():
                self.seen["goaways"] += 1
            case StreamError():
                self.seen["stream errors"] += 1
            case _:
                pass

    async def follow_grpc(self, name: str, url: str) -> None:
        """The journal's stream; one that is refused starts over, which a reader of lost entries must."""
        records = self.recorder(name)
        async with tape.aconnect(url) as node:
            for number in count(1):
                records.write(StreamLine, number=number, step="invoke")
                try:
                    async with aclosing(await node.events.stream(from_global_seq=0)) as stream:
                        async for entry in stream:
                            body = entry.payload.get("id", "") if isinstance(entry.payload, dict) else ""
                            records.write(
                                EntryLine, number=number, run_id=entry.run_id, seq=entry.seq, epoch=int(entry.epoch),
                                global_seq=entry.global_seq, event_id=str(body), subject=entry.subject,
                            )  # fmt: skip
                            self.position[name] = entry.global_seq
                except TapeError as error:
                    self.seen[f"streams refused: {error.code}"] += 1
                    records.write(StreamLine, number=number, step="fail", reason=error.code)
                await anyio.sleep(RESTART_S)
