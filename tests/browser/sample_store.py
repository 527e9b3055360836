"""A store with one of everything: a run with ledgers, dead tasks, an outbox, a lake with tables."""

from pathlib import Path

from tape.bus.journal import Journal
from tape.compose import aconnect, open_backend
from tape.core.effect import EffectStatus
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.core.run_state import RunStatus
from tape.lake.log import DeltaLog
from tape.lake.schema import TABLES
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.outbox import migrate
from tape.work.answers import Dead
from tape.work.handler import handler
from tests.lake.local_lake import fill, opened
from tests.lake.sample_tables import tables
from tests.lake.table_files import write_table
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event

SHIP = "demo.ship"
ORDERS = 8


async def fill_store(url: str, lake: Path, word: str = "an order") -> str:
    """Fills the store and returns the id of the run with ledgers; `word` stands wherever a user's text may."""
    run_id = await record_ledgers(url, word)
    async with open_backend(url) as backend:
        await record_tasks(backend.store, backend.journal, word)
    await record_outbox(url, word)
    async with opened(url) as (store, journal):
        await fill(store, DeltaLog(lake / "journal"), url)
        await journal.append(Event(run_id="shop", payload={"after": "the lake"}))
        head = await journal.head()
    for name, rows in tables(name=word).items():
        if name in TABLES or name == "quarantine":
            write_table(lake, name, rows, head - 1)
    return run_id


async def record_ledgers(url: str, word: str) -> str:
    """A run with decisions, effects, a failed effect and a gate."""
    async with aconnect(url) as node:
        run_id = (await node.runs.begin("treasury", "ann", "s", "1", owner="worker")).run.run_id
        for index in range(4):
            await node.decisions.record(run_id, index, model="small", response={"pay": index, "note": word})
            effect = await node.effects.begin(run_id, "wire", {"amount": index}, decision_index=index)
            status = EffectStatus.FAILED if index == 2 else EffectStatus.CONFIRMED
            await node.effects.complete(run_id, effect.idempotency_key, status, response=word)
        await node.gates.wait(run_id, "approval", context={"amount": 7})
        await node.gates.send(run_id, "approval", {"by": word})
        await node.runs.end(run_id, RunStatus.TERMINAL)
    return str(run_id)


async def record_tasks(store: Store, journal: Journal, word: str) -> None:
    """A reaction with two dead tasks, one with a failing predicate, and a paused one."""

    def ship(order: object) -> None:
        if order.payload["order"] in (3, 6):  # type: ignore[attr-defined]
            raise Dead(f"no such street: {word}")

    rule = Reaction(reaction_id=SHIP, name=word, subject_pattern="/orders/*", predicate_cel="payload.amount >= 20")
    errs = Reaction(reaction_id="demo.errs", subject_pattern="/orders/*", predicate_cel="payload.nothing > 1")
    config = WorkerConfig(handlers={SHIP: handler(ship)}, reactions=(rule, errs, Reaction(reaction_id="demo.idle")))
    dispatcher = Dispatcher(store, config, journal)
    await dispatcher.register()
    await store.reactions.pause("demo.idle", word)
    orders = [
        Event(
            run_id="shop",
            subject=f"/orders/{n}",
            type="order.placed",
            payload={"order": n, "amount": 10 * n, "note": word},
        )
        for n in range(1, ORDERS + 1)
    ]
    await journal.append(orders, open=True)
    await dispatcher.run_once()


async def record_outbox(url: str, word: str) -> None:
    """An outbox with a delivered, a failed and a pending row."""
    business = BusinessDatabase("sqlite", url)
    await migrate(url)
    await business.run("CREATE TABLE orders (n INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')")
    await business.publish(*(make_event(n, event_type=f"order {word}", payload={"n": n, "note": word}) for n in (1, 2)))
    seen = RecordingHandler(lambda event: ValueError(f"no such account {word}") if event.payload["n"] == 2 else None)
    async with business.listening({"orders.seen": seen}):
        await business.wait_until("delivered", 1)
        await business.wait_until("failed", 1)
    await business.publish(make_event(3, payload={"n": 3, "large": 9007199254740993}))
