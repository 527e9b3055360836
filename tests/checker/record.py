"""Records `recorded.jsonl`, a small history of everything that the checker judges: python -m tests.checker.record.

The store is a real SQLite file and the lake a real lake, so this takes half a minute; tests doctor the file it leaves.
"""

import json
import sys
from contextlib import aclosing
from datetime import timedelta
from functools import partial
from itertools import count, groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import anyio
import anyio.to_thread

from tape.bus.journal import Journal
from tape.checker.lines import (
    AppendedEvent,
    AppendedPosition,
    AppendLine,
    ClaimLine,
    DeliverLine,
    EffectLine,
    EntryLine,
    ForkLine,
    HandleLine,
    LakeLine,
    PublishLine,
    ReadLine,
    RegisterLine,
    SettleLine,
    StreamLine,
    TaskLine,
)
from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.core.task import ClaimRequest, Done, Settlement, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.outbox import OutboxEvent, migrate
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.outbox.business_database import BusinessDatabase, make_event, rows
from tests.process.recorder import Recorder, merged, save
from tests.server.server import clean_environment
from tests.servers import forked

TARGET = Path(__file__).with_name("recorded.jsonl")
REACTIONS = ("handled", "claimed")
PATTERN = "/shop/order/*"


class Scenario:
    """Clients on one store, each with a recorder."""

    def __init__(self, folder: Path, store: Store, journal: Journal) -> None:
        self._folder = folder
        self._store = store
        self._journal = journal
        self._numbers = count(1)
        self._recorders: dict[str, Recorder] = {}

    def recorder(self, client: str) -> Recorder:
        if client not in self._recorders:
            self._recorders[client] = Recorder(self._folder / f"{client}.jsonl")
        return self._recorders[client]

    async def append(self, client: str, run_id: str, *payloads: str, tries: int = 1) -> None:
        """One request, acknowledged as often as it is tried."""
        number, key = next(self._numbers), f"{client}-{payloads[0]}"
        events = [Event(run_id=run_id, payload=each, subject=f"/shop/order/{each}") for each in payloads]
        asked = tuple(AppendedEvent(each.run_id, each.event_id, each.subject) for each in events)
        for _ in range(tries):
            self.recorder(client).write(AppendLine, number=number, step="invoke", key=key, events=asked)
            entries = await self._journal.append(events, key=key, open=True)
            given = tuple(AppendedPosition(each.global_seq, each.seq) for each in entries)
            epoch = int(entries[0].epoch)
            self.recorder(client).write(AppendLine, number=number, step="ok", positions=given, epoch=epoch)

    async def read(self, client: str, *, follow: bool = False, ends: str = "", **chosen: Any) -> None:
        """A stream, until it ends."""
        number, recorder = next(self._numbers), self.recorder(client)
        after = chosen.get("from_global_seq", chosen.get("from_seq", 1) - 1)
        asked = {"run_id": chosen.get("run_id", ""), "pattern": chosen.get("subject", ""), "after": after}
        recorder.write(
            StreamLine, number=number, step="invoke", is_followed=follow, epoch=int(self._journal.epoch), **asked
        )
        async with aclosing(self._journal.stream(follow=follow, **chosen)) as stream:
            async for entry in stream:
                recorder.write(
                    EntryLine, number=number, run_id=entry.run_id, seq=entry.seq, global_seq=entry.global_seq,
                    event_id=entry.event_id, subject=entry.subject, epoch=int(entry.epoch),
                )  # fmt: skip
        recorder.write(StreamLine, number=number, step="ok", reason=ends)

    async def register(self) -> None:
        for reaction_id in REACTIONS:
            await self._store.reactions.register(
                Reaction(reaction_id=reaction_id, subject_pattern=PATTERN, max_concurrency=1)
            )
            self.recorder("owner").write(
                RegisterLine, number=next(self._numbers), step="ok", reaction_id=reaction_id, pattern=PATTERN,
                max_concurrency=1,
            )  # fmt: skip

    async def work(self, events: int) -> None:
        """A worker handles one reaction's tasks; another claims and settles those of the other one."""
        handled = WorkerConfig(handlers={"handled": handler(self._handle)}, owner="worker", slots=2)
        with anyio.fail_after(60):
            async with background(partial(work_forever, Dispatcher(self._store, handled, self._journal))):
                settled = 0
                while settled < events or not await self._is_done(2 * events):
                    settled += await self._claim()
                    await anyio.sleep(0.02)

    async def _handle(self, envelope: Envelope) -> None:
        recorder = self.recorder("worker")
        names = {"task_id": envelope.task_id, "reaction_id": envelope.reaction_id, "attempt": envelope.attempt}
        recorder.write(HandleLine, step="invoke", global_seq=envelope.global_seq, **names)
        recorder.write(HandleLine, step="ok", global_seq=envelope.global_seq, **names)

    async def _claim(self) -> int:
        recorder = self.recorder("claimer")
        request = ClaimRequest(owner="claimer", limit=1, reaction_ids=["claimed"], lease=timedelta(seconds=30))
        claimed = await self._store.tasks.claim(request)
        for task in claimed.tasks:
            number = next(self._numbers)
            names = {"number": number, "task_id": task.task_id, "attempt": task.attempt}
            recorder.write(
                ClaimLine, step="ok", reaction_id=task.reaction_id, global_seq=task.source_global_seq, **names
            )
            recorder.write(SettleLine, step="invoke", **names)
            (refused,) = await self._store.tasks.settle([Settlement(task.claim, Done())])
            recorder.write(SettleLine, step="fail" if refused else "ok", **names)
        return len(claimed.tasks)

    async def _is_done(self, count: int) -> bool:
        tasks = await self._store.tasks.listed(limit=100)
        return len(tasks) == count and all(task.status is TaskStatus.DONE for task in tasks)

    async def list_tasks(self) -> None:
        number, recorder = next(self._numbers), self.recorder("owner")
        recorder.write(ReadLine, number=number, step="invoke", of="tasks")
        for task in await self._store.tasks.listed(limit=100):
            recorder.write(
                TaskLine, number=number, task_id=task.task_id, reaction_id=task.reaction_id, attempt=task.attempt,
                global_seq=task.source_global_seq, status=task.status.name.lower(),
            )  # fmt: skip
        recorder.write(ReadLine, number=number, step="ok", of="tasks", is_final=True)

    async def fork(self) -> None:
        number, recorder = next(self._numbers), self.recorder("forker")
        recorder.write(ForkLine, number=number, step="invoke", parent="orders", at_seq=2)
        await self._journal.fork("orders", 2, run_id="what-if", mutation={"price": 90})
        recorder.write(ForkLine, number=number, step="ok", parent="orders", at_seq=2, child="what-if")

    async def trade(self, business: BusinessDatabase) -> None:
        """Two generations publish; a transaction is rolled back; each generation's worker handles its own."""
        async with (
            business.listening({"test.ship": self._shipping(1)}, generation=1),
            business.listening({"test.ship": self._shipping(2)}, generation=2),
        ):
            for n, generation, commits in ((1, 1, True), (2, 2, True), (3, 1, False), (4, 1, True)):
                recorder = self.recorder(f"business{generation}")
                names = {"number": n, "event_id": str(n), "generation": generation}
                recorder.write(PublishLine, step="invoke", **names)
                await business.publish(make_event(n), generation=generation, commits=commits)
                recorder.write(PublishLine, step="ok" if commits else "fail", **names)
            await business.wait_until("delivered", 3)

    def _shipping(self, generation: int) -> Any:
        async def ship(event: OutboxEvent, connection: Any) -> None:
            recorder = self.recorder(f"shipper{generation}")
            names = {"event_id": str(event.payload["n"]), "handler": "test.ship", "generation": generation}
            recorder.write(DeliverLine, step="invoke", **names)
            await rows(connection, f"INSERT INTO orders (n, note) VALUES ({event.payload['n']}, 'shipped')")
            recorder.write(DeliverLine, step="ok", **names)

        return ship

    async def list_effects(self, business: BusinessDatabase) -> None:
        number, recorder = next(self._numbers), self.recorder("owner")
        recorder.write(ReadLine, number=number, step="invoke", of="effects")
        for (n,) in await business.rows("SELECT n FROM orders WHERE note = 'shipped'"):
            recorder.write(EffectLine, number=number, handler="test.ship", event_id=str(n))
        recorder.write(ReadLine, number=number, step="ok", of="effects", is_final=True)

    def read_lake(self, url: str) -> None:
        lake = ["--store", url, "--lake", str(self._folder / "lake")]
        command(self._folder, "lake", "sync", *lake)
        listed = command(
            self._folder,
            "lake",
            "query",
            "select global_seq from journal order by 1",
            "--json",
            *lake,
        )
        places = [each for line in listed.splitlines() for each in numbers_in(json.loads(line))]
        groups = [
            [place for _, place in group] for _, group in groupby(enumerate(places), lambda each: each[1] - each[0])
        ]
        self.recorder("lake").write(LakeLine, ranges=tuple((each[0], each[-1]) for each in groups))


async def work_forever(dispatcher: Dispatcher) -> NoReturn:
    await dispatcher.run()
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


def numbers_in(value: Any) -> list[int]:
    """The numbers in an answer of `tape lake query`, whatever its shape."""
    if isinstance(value, dict):
        value = value.get("rows", list(value.values()))
    if isinstance(value, list):
        return [number for each in value for number in numbers_in(each)]
    return [value] if isinstance(value, int) else []


def command(folder: Path, *arguments: str) -> str:
    done = forked.run("tape.cli.main", arguments, folder=folder, environment=clean_environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


async def record(folder: Path) -> None:
    url = f"sqlite:///{folder / 'journal.db'}"
    business = BusinessDatabase("sqlite", f"sqlite:///{folder / 'business.db'}")
    await migrate(business.url)
    await business.run("CREATE TABLE orders (n INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')")
    async with open_store(url) as store, run_journal(store) as journal:
        scenario = Scenario(folder, store, journal)
        await scenario.register()
        await scenario.append("shop", "orders", "a", "b", "c")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow_until_closed, scenario)
            await scenario.append("market", "orders", "d", tries=2)
            await scenario.append("shop", "sales", "e", "f")
            await scenario.work(6)
            await scenario.fork()
            await journal.close_run("orders")
        await scenario.read("brancher", run_id="what-if")
        await scenario.read("resumer", from_global_seq=3)
        await scenario.read("chooser", subject=PATTERN)
        await scenario.list_tasks()
        await scenario.trade(business)
        await scenario.list_effects(business)
        await anyio.to_thread.run_sync(scenario.read_lake, url)
        await scenario.read("reader")


async def follow_until_closed(scenario: Scenario) -> None:
    await scenario.read("follower", run_id="orders", follow=True, ends="the run is closed")


def main() -> None:
    with TemporaryDirectory() as folder:
        anyio.run(record, Path(folder))
        lines = merged(Path(folder).glob("*.jsonl"))
        save(lines, TARGET)
        sys.stdout.write(f"{len(lines)} lines\n")


if __name__ == "__main__":
    main()
