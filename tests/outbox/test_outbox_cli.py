"""The commands of `tape outbox`."""

import json
from pathlib import Path

import anyio
import pytest

from tape.cli.main import run
from tape.outbox import TerminalHandlerError, migrate
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'business.db'}"


@pytest.fixture
def dead(url: str) -> str:
    """The id of a dead letter."""
    business, event = BusinessDatabase("sqlite", url), make_event(1)

    async def die() -> None:
        await migrate(url)
        await business.run("CREATE TABLE orders (n INTEGER)")
        await business.publish(event, generation=1)
        broken = RecordingHandler(lambda _: TerminalHandlerError("no"))
        async with business.listening({"test.broken": broken}, generation=1):
            await business.wait_until("failed", 1)

    anyio.run(die)
    return str(event.event_id)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run(["outbox", *arguments, "--json"]) == 0, capsys.readouterr().err
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_migrating_prints_the_applied_steps_once(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, "migrate", "--store", url) == [{"applied": ["0001 create_outbox"]}]
    assert asked(capsys, "migrate", "--store", url) == [{"applied": []}]


def test_a_dead_letter_is_listed_and_shown(url: str, dead: str, capsys: pytest.CaptureFixture[str]) -> None:
    (listed,) = asked(capsys, "ls", "--status", "failed", "--store", url)
    (shown,) = asked(capsys, "show", dead, "--store", url)

    assert (listed["event_id"], listed["last_error"]) == (dead, "TerminalHandlerError: no")
    assert [state["handler_name"] for state in shown["deliveries"]] == ["test.broken"]  # type: ignore[attr-defined]


def test_a_dead_letter_is_replayed_into_another_generation_and_handed_over(
    url: str, dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(capsys, "replay", dead, "--generation", "2", "--store", url) == [{"replayed": 1}]
    assert asked(capsys, "hand-over", "2", "--generation", "3", "--store", url) == [{"handed_over": 1}]
    (shown,) = asked(capsys, "show", dead, "--store", url)

    assert (shown["generation"], shown["status"], shown["channel"]) == (3, "pending", "outbox_gen_3")


def test_all_dead_letters_are_replayed_at_once(url: str, dead: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, "replay", "--failed", "--type", "other", "--store", url) == [{"replayed": 0}]
    assert asked(capsys, "replay", "--failed", "--handler", "test.broken", "--store", url) == [{"replayed": 1}]


def test_naming_nothing_to_replay_is_refused(url: str, dead: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "replay", "--store", url]) == 2
    assert "--failed" in capsys.readouterr().err


def test_a_retention_that_would_handle_twice_is_refused(
    url: str, dead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["outbox", "retention", "--handled-active", "52d", "--store", url]) == 2
    assert "handled twice" in capsys.readouterr().err
    assert asked(capsys, "retention", "--store", url) == [{"marked": 0, "deleted": 0, "forgotten": 0}]


def test_stats_show_the_pending_rows(url: str, dead: str, capsys: pytest.CaptureFixture[str]) -> None:
    (stats,) = asked(capsys, "stats", "--store", url)

    assert (stats["pending"], stats["in_flight"], stats["failed"], stats["rows"]) == (0, 0, 1, 1)


def test_contracts_are_recorded_and_then_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    source = "from msgspec import Struct\nPAID_TYPE = 'orders.paid'\nPAID_VERSION = 1\nclass Paid(Struct):\n  n: int\n"
    (tmp_path / "order_contracts.py").write_text(source)
    check = ["outbox", "contracts", "check", "order_contracts"]

    assert run(check) == 1
    assert run([*check, "--update"]) == 0
    assert run(check) == 0
    assert "orders.paid" in capsys.readouterr().out


def test_what_does_not_exist_is_not_found(url: str, dead: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "show", dead.replace(dead[:4], "ffff"), "--store", url]) == 4
