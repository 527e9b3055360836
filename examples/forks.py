import asyncio

from tape import Event, open_journal


async def main() -> None:
    async with open_journal("memory://") as journal:
        for sails in (3, 2, 1):
            await journal.append(Event(run_id="voyage", type="sailed", payload={"sails": sails}), open=True)

        await journal.fork("voyage", 2, run_id="storm", mutation={"wind": 9}, reason="what if")
        await journal.append(Event(run_id="storm", type="sailed", payload={"sails": 0}))

        async for entry in journal.stream(run_id="storm", follow=False):
            print(entry.seq, entry.run_id, entry.type, entry.payload)

        diff = await journal.diff("voyage", "storm")
        print(f"they share {diff.shared} entries, then:")
        for row in diff.rows:
            print(row.one and row.one.type, row.other and row.other.type, *row.changes)


asyncio.run(main())
