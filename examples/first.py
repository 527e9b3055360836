import anyio

import tape


async def watch(journal: tape.Journal) -> None:
    async for entry in journal.stream(run_id="order-17"):  # replays, then follows, and ends when the run is closed
        print(entry.seq, entry.type, entry.payload)


async def main() -> None:
    async with tape.open_journal("sqlite:///first.db") as journal, anyio.create_task_group() as tasks:
        tasks.start_soon(watch, journal)
        order = [
            tape.Event(run_id="order-17", type="placed", payload={"item": "lamp", "price": 40}),
            tape.Event(run_id="order-17", type="paid", payload={"by": "card"}),
        ]
        await journal.append(order, key="order-17-begins", open=True)  # on disk when it returns
        await journal.append(order, key="order-17-begins", open=True)  # the same key: stored once
        await journal.close_run("order-17")


anyio.run(main)
