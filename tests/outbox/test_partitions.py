"""A large outbox: partitioned by month, and reported by `tape doctor`."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from tape.cli.doctor.outbox import findings_of
from tape.cli.main import run
from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention
from tape.core.outbox_record import OutboxStats
from tape.outbox.database import migrate, open_outbox
from tape.store.outbox.table import OutboxTable
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event

PARTITIONS = (
    "SELECT c.relname::text FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = 'core.outbox'::regclass ORDER BY 1"
)
QUIET = OutboxStats(
    pending=0, in_flight=0, failed=0, oldest_ms=0, rows=1_000, ack_p50_ms=1.0, ack_p99_ms=2.0, notify_queue_usage=0.0
)


async def divided(business: BusinessDatabase) -> list[str]:
    async with open_outbox(business.url) as database:
        return await OutboxTable(database).divide()


async def test_a_table_is_divided_under_rows_of_every_status_and_goes_on(postgres: BusinessDatabase) -> None:
    seen, late = (
        RecordingHandler(),
        RecordingHandler(lambda event: ValueError("no") if event.payload["n"] == 1 else None),
    )
    async with postgres.listening({"orders.seen": seen, "orders.late": late}):
        await postgres.publish(make_event(1), make_event(2))
        await postgres.wait_until("failed", 1)

        made = await divided(postgres)
        await postgres.publish(make_event(3), make_event(4, occurred_at=datetime.now(UTC) + timedelta(days=40)))
        await postgres.wait_until("delivered", 3)

    assert made[:2] == ["outbox_before", "outbox_later"] and len(made) == 2 + 3
    assert sorted(seen.numbers) == [1, 2, 3, 4]
    assert [position for (position,) in await postgres.states("position")] == [1, 2, 3, 4]


async def test_dividing_twice_makes_only_what_is_missing(postgres: BusinessDatabase) -> None:
    await divided(postgres)
    before = await postgres.rows(PARTITIONS)

    assert await divided(postgres) == []
    assert await postgres.rows(PARTITIONS) == before


async def test_retention_creates_the_next_partitions_and_locks_the_table_for_nothing_else(
    postgres: BusinessDatabase,
) -> None:
    *_, last = await divided(postgres)
    await postgres.run(f"DROP TABLE core.{last}")
    async with open_outbox(postgres.url) as database:
        await OutboxTable(database).retain(OutboxRetention())
        made = await postgres.rows(PARTITIONS)
        async with postgres.connected() as publisher, publisher.transaction():
            await publisher.execute("LOCK TABLE core.outbox IN ROW EXCLUSIVE MODE")
            with anyio.fail_after(DEADLINE_S):
                await OutboxTable(database).retain(OutboxRetention())

    assert (last,) in made


async def test_an_event_of_any_time_finds_a_partition(postgres: BusinessDatabase) -> None:
    await divided(postgres)
    times = [datetime(1999, 1, 1, tzinfo=UTC), datetime(2199, 1, 1, tzinfo=UTC), datetime.now(UTC)]

    await postgres.publish(*(make_event(n, occurred_at=time) for n, time in enumerate(times)))

    assert await postgres.states("status") == [("pending",)] * 3


async def test_a_divided_table_is_replayed_handed_over_and_forgotten_like_any_other(postgres: BusinessDatabase) -> None:
    seen = RecordingHandler(lambda event: ValueError("no"))
    await divided(postgres)
    async with postgres.listening({"orders.seen": seen}):
        await postgres.publish(make_event(1))
        await postgres.wait_until("failed", 1)
    await postgres.publish(make_event(2), generation=7)

    async with open_outbox(postgres.url) as database:
        table = OutboxTable(database)
        (failed,) = [record for record in await table.listed() if record.status == "failed"]
        replayed = await table.replay([failed.event_id], 8, "me")
        handed = await table.hand_over(7, 8)
        await postgres.run("UPDATE core.outbox SET created_at = now() - INTERVAL '90 days', status = 'delivered'")
        kept = await table.retain(OutboxRetention())

    assert (replayed, handed) == ([failed.event_id], 1)
    assert kept.marked == 2


async def test_an_outbox_of_another_schema_is_divided_alone(postgres: BusinessDatabase) -> None:
    await migrate(postgres.url, schema="billing")

    async with open_outbox(postgres.url, schema="billing") as database:
        await OutboxTable(database).divide()

    assert await postgres.rows("SELECT relkind::text FROM pg_class WHERE oid = 'core.outbox'::regclass") == [("r",)]
    assert await postgres.rows("SELECT relkind::text FROM pg_class WHERE oid = 'billing.outbox'::regclass") == [("p",)]


async def test_a_file_cannot_be_divided(tmp_path: Path) -> None:
    file = BusinessDatabase("sqlite", f"sqlite:///{tmp_path / 'business.db'}")
    await migrate(file.url)

    with pytest.raises(UsageError, match="no partitions"):
        await divided(file)


@pytest.mark.parametrize(
    ("grown", "advice"),
    [
        ({}, []),
        ({"rows": 5_000_001}, ["tape outbox partition"]),
        ({"rows": 20_000_001}, ["tape outbox partition", "tape outbox relay"]),
        ({"ack_p99_ms": 501.0}, ["tape outbox relay"]),
        ({"notify_queue_usage": 0.25}, ["long transaction"]),
    ],
)
def test_statistics_give_advice(grown: dict[str, float], advice: list[str]) -> None:
    given = replace(QUIET, **grown)  # type: ignore[arg-type]

    assert len(given.advice) == len(advice)
    assert all(words in text for words, text in zip(advice, given.advice, strict=True))


def test_the_doctor_reports_a_large_outbox() -> None:
    findings = findings_of(replace(QUIET, rows=6_000_000, failed=2))

    found = {finding.subject: finding for finding in findings}
    assert found["outbox"].status == "ok"
    assert (found["dead letters"].status, found["outbox growth"].status) == ("warn", "warn")
    assert "tape outbox partition" in found["outbox growth"].fix


def test_the_doctor_checks_the_outbox_in_the_journals_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    assert run(["migrate", "--store", url]) == 0
    assert run(["outbox", "migrate", "--store", url]) == 0
    capsys.readouterr()

    run(["doctor", "--json", "--store", url])

    found = {each["subject"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert found["outbox"]["status"] == "ok" and "0 pending" in found["outbox"]["value"]


def test_the_command_divides(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "partition", "--json", "--store", postgres_url]) == 0
    (first,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert run(["outbox", "partition", "--json", "--store", postgres_url]) == 0

    assert first["made"][:2] == ["outbox_before", "outbox_later"]
    assert json.loads(capsys.readouterr().out) == {"made": []}
