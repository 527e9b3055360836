"""Schema steps only add, so old code runs on a new schema."""

from tape.core.ids import GlobalSeq
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, make_event, positions

TOMORROW = (
    "INSERT INTO tape_schema (line, number, name, applied_at) VALUES ('journal', 9999, 'from_tomorrow', 0)",
    "ALTER TABLE tape_journal ADD COLUMN tomorrow TEXT",
    "ALTER TABLE tape_heads ADD COLUMN tomorrow TEXT",
    "ALTER TABLE tape_runs ADD COLUMN tomorrow TEXT",
)


@needs_ledgers
async def test_old_code_goes_on_with_a_newer_schema(backend: Backend) -> None:
    if not backend.is_durable:
        return
    async with backend.open() as store:
        await append(store, make_event(n=1))
        async with store.transaction() as tx:
            for step in TOMORROW:
                await tx.fetch(step, {})

    async with backend.open() as store:
        assert store.applied == ()
        assert positions(await append(store, make_event(n=2))) == [2]
        assert positions((await store.journal.read(GlobalSeq(0))).entries) == [1, 2]
