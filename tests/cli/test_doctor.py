"""`tape doctor` reports problems of a server and its readers, and what to do."""

import json
from pathlib import Path

import anyio
import asyncpg
import pytest

import tape
from tape.cli.doctor import lag as doctor_lag
from tape.cli.doctor.postgres import findings_of
from tape.cli.doctor.work import check_work
from tape.cli.main import run
from tape.compose import open_store
from tape.store.postgres.checkup import Checkup, Standbys
from tests.servers import binaries
from tests.servers.databases import name
from tests.servers.pgbouncer import PgBouncerServer

POOLER = binaries.pgbouncer()
WELL = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "max_connections": "100"}
SYNCHRONOUS = {**WELL, "synchronous_standby_names": "standby"}
NOT_WAITING = {**SYNCHRONOUS, "synchronous_commit": "local"}


def findings(url: str, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    run(["doctor", "--store", url, "--json"])
    lines = capsys.readouterr().out.splitlines()
    return {found["subject"]: found for found in map(json.loads, lines)}


def checkup(**facts: object) -> dict[str, str]:
    """How each fact of a server is findings_of that is well but for these."""
    well = Checkup(version=16, settings=WELL, sessions=3, oldest_s=1.0, hears=True)
    return {found.subject: found.status for found in findings_of(well._replace(**facts))}  # type: ignore[arg-type]


def test_a_healthy_server_has_no_findings_to_fix(postgres_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["migrate", "--store", postgres_url]) == 0
    capsys.readouterr()

    found = findings(postgres_url, capsys)

    wanted = {"postgres", "fsync", "synchronous_commit", "connections", "oldest transaction", "listening", "journal"}
    assert wanted <= found.keys()
    assert {found[subject]["status"] for subject in wanted - {"fsync", "full_page_writes"}} == {"ok"}


def test_a_server_that_acknowledges_too_soon_fails_with_the_fix(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    anyio.run(execute, postgres_url, f"ALTER DATABASE {name(postgres_url)} SET synchronous_commit = off")

    found = findings(postgres_url, capsys)["synchronous_commit"]

    assert (found["status"], found["value"]) == ("fail", "off")
    assert "set synchronous_commit = on" in found["fix"]


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


@pytest.mark.skipif(POOLER is None, reason="no PgBouncer here; install one, or name it")
def test_a_pooler_in_the_way_is_named_and_so_is_the_way_around_it(
    postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert POOLER is not None
    with PgBouncerServer(POOLER, postgres_url) as server:
        found = findings(server.url(postgres_url), capsys)

    assert (found["listening"]["status"], found["journal"]["status"]) == ("warn", "fail")
    assert "the server's own URL" in found["listening"]["fix"]
    assert "through a pooler" in found["journal"]["value"]


def test_a_server_that_is_not_there_is_no_matter_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    found = findings("postgresql://nobody@127.0.0.1:9/nothing", capsys)["journal"]

    assert found["status"] == "fail" and "see that the server runs" in found["fix"]


@pytest.mark.parametrize(
    ("facts", "subject", "status"),
    [
        ({"version": 12}, "postgres", "fail"),
        ({"settings": {**WELL, "fsync": "off"}}, "fsync", "fail"),
        ({"settings": {**WELL, "full_page_writes": "off"}}, "full_page_writes", "fail"),
        ({"sessions": 81}, "connections", "warn"),
        ({"oldest_s": 3600.0}, "oldest transaction", "warn"),
        ({"hears": False}, "listening", "warn"),
        ({"standbys": Standbys(asynchronous=1)}, "standbys", "warn"),
        ({"standbys": Standbys(hidden=1)}, "standbys", "warn"),
        ({"standbys": Standbys(hidden=1), "settings": SYNCHRONOUS}, "standbys", "ok"),
        ({"standbys": Standbys(synchronous=1, asynchronous=1), "settings": SYNCHRONOUS}, "standbys", "ok"),
        ({"standbys": Standbys(synchronous=1), "settings": NOT_WAITING}, "standbys", "warn"),
    ],
)
def test_what_is_not_well_is_judged_alone(facts: dict[str, object], subject: str, status: str) -> None:
    judgement = checkup(**facts)

    assert judgement.pop(subject) == status
    assert set(judgement.values()) == {"ok"}


async def fail_with_obligation(url: str) -> str:
    """A failed run with an obligation, an effect and a timer that no worker serves."""
    async with tape.aconnect(url) as node:
        run_id = (await node.runs.begin("shop", invocation="1")).run.run_id
        await node.obligations.register(run_id, "wire", "refund", compensator_ref="shop.pay:refund")
        await node.effects.begin(run_id, "post", dispatch_mode=tape.DispatchMode.OUTBOX, connector="mail")
        await node.timers.set(run_id, "t", 1, "redrive")
        await node.runs.end(run_id, tape.RunStatus.FAILED)
    return run_id


async def test_work_that_no_worker_takes_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPE_APP", "shop")
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    await fail_with_obligation(url)

    async with open_store(url) as store:
        found = await check_work(store, 0)

    assert [finding.value for finding in found] == [
        "1 × obligation shop.pay:refund of app shop; 1 × effect mail of app shop; 1 × timer redrive of app shop"
    ]


def test_the_doctor_and_a_run_show_what_nobody_serves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_APP", "shop")
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    run_id = anyio.run(fail_with_obligation, url)

    assert findings(url, capsys)["waiting work"]["value"] == "1 × timer redrive of app shop"  # it was due in 1970
    assert run(["run", "show", run_id, "--store", url]) == 0

    assert "shop.pay:refund of app shop, pending after 0 attempts" in capsys.readouterr().out


def test_dead_tasks_and_readers_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    rule = ["reaction", "add", "rule", "/tape/event/**", "--agent", "nobody", "--store", url]
    assert run(rule) == run(["publish", "r", "1", "--open", "--store", url]) == 0
    capsys.readouterr()

    found = findings(url, capsys)

    assert found["reactions"]["value"] == "1, 2 entries behind"
    assert "dead tasks" not in found


@pytest.mark.parametrize(
    ("through", "head", "status", "value"),
    [
        (100, 100, "ok", "holds 1 to 100, 0 entries behind"),
        (100, 20_000, "warn", "holds 1 to 100, 19,900 entries behind"),
        (101, 100, "fail", "holds 1 to 101, 0 entries behind"),
    ],
)
def test_a_lake_is_well_near_the_head_and_never_beyond_it(through: int, head: int, status: str, value: str) -> None:
    found = doctor_lag.findings_of(through, head)

    assert (found.status, found.value) == (status, value)
