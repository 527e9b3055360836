"""`tape value`, and the ledgers in `tape run`: output and exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

import tape as library
from tape.cli.main import run


class Tape:
    """The command on a journal of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self._capsys = capsys
        self.url = url

    def __call__(self, *arguments: str) -> tuple[int, str]:
        code = run(arguments)
        out, err = self._capsys.readouterr()
        return code, out if code == 0 else err

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        code, out = self(*arguments, "--json")
        assert code == 0, out
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tape:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    monkeypatch.setenv("TAPE_STORE", url)
    monkeypatch.chdir(tmp_path)
    return Tape(capsys, url)


@pytest.fixture
def run_id(tape: Tape) -> str:
    """A run that has decided and done something, and waits."""
    with library.connect(tape.url) as client:
        begun = client.runs.begin("app").run.run_id
        client.decisions.record(begun, 0, response="pay")
        effect = client.effects.begin(begun, "wire", 7, decision_index=0)
        client.effects.complete(begun, effect.idempotency_key, response="paid")
        client.gates.wait(begun, "approval")
    return begun


def test_a_value_is_set_read_and_deleted(tape: Tape) -> None:
    answer = [tape("value", "set", "fx", "eur", text) for text in ("1.1", '{"rate": 1.2}')]

    assert answer == [(0, "1  1.1\n"), (0, '2  {"rate":1.2}\n')]
    assert tape("value", "get", "fx", "eur") == (0, '{"rate":1.2}\n')
    assert tape("value", "delete", "fx", "eur") == (0, "3  deleted\n")
    assert tape("value", "history", "fx", "eur") == (0, '1  1.1\n2  {"rate":1.2}\n3  deleted\n')


def test_json_output_of_a_value_has_all_fields(tape: Tape) -> None:
    (written,) = tape.json("value", "set", "fx", "eur", "1.1", "--writer", "ann")

    assert {**written, "ts_ms": 0} == {
        "namespace": "fx", "key": "eur", "version": 1, "value": 1.1, "writer": "ann", "ts_ms": 0, "deleted": False,
    }  # fmt: skip
    assert tape.json("value", "get", "fx", "eur") == [written]
    (answer,) = tape.json("value", "history", "fx", "eur")
    assert {**answer, "ts_ms": written["ts_ms"]} == {**written, "prev_version": 0, "prev_value_json": ""}


def test_a_value_is_watched_from_what_is_known_or_from_a_version(tape: Tape) -> None:
    for text in ("1", "2", "3"):
        tape("value", "set", "fx", "eur", text)

    (now,) = tape.json("value", "watch", "fx", "eur", "--count", "1")
    after = tape.json("value", "watch", "fx", "eur", "--from-version", "1", "--count", "2")

    assert (now["version"], now["prev_version"]) == (3, None)
    assert [(each["version"], each["prev_value_json"]) for each in after] == [(2, "1"), (3, "2")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["get", "fx", "never"], 4),
        (["delete", "fx", "never"], 4),
        (["set", "fx", "eur", "2", "--if-version", "0"], 5),
        (["set", "fx", "eur", "2", "--if-version", "7"], 5),
        (["set", "fx", "eur", "no JSON"], 2),
        (["set", "fx", "eur", "2", "--if-version", "-1"], 2),
    ],
)
def test_a_value_that_cannot_be_had_or_written_ends_with_its_number(
    tape: Tape, arguments: list[str], code: int
) -> None:
    tape("value", "set", "fx", "eur", "1")

    assert tape("value", *arguments)[0] == code
    assert tape("value", "get", "fx", "eur") == (0, "1\n")


def test_a_signal_lets_a_run_go_on(tape: Tape, run_id: str) -> None:
    first = tape.json("run", "signal", run_id, "approval", '"yes"', "--key", "k")
    again = tape("run", "signal", run_id, "other")

    assert first == [{"accepted": True, "run_id": run_id, "run_status": "runnable"}]
    assert again == (0, f"{run_id}  will find the answer when it comes to the gate\n")
    assert tape("run", "signal", "nobody", "approval")[0] == 4


def test_a_run_of_a_ledger_is_shown_with_how_its_work_is_doing(tape: Tape, run_id: str) -> None:
    (facts,) = tape.json("run", "show", run_id)
    _, table = tape("run", "show", run_id)

    assert (facts["status"], facts["ledger"]["status"], facts["ledger"]["app"]) == ("running", "waiting", "app")
    assert "waiting on gate  approval" in table


def test_a_run_of_a_ledger_is_cancelled_in_its_ledger(tape: Tape, run_id: str) -> None:
    (ended,) = tape.json("run", "cancel", run_id, "--reason", "enough")

    assert ended["run_id"] == run_id
    with library.connect(tape.url) as client:
        found = client.runs.get(run_id)
    assert (found.status, found.detail_json) == (library.RunStatus.CANCELLED, '{"reason":"enough"}')


def test_a_fork_with_effects_inherits_ledgers_and_the_diff_shows_them(tape: Tape, run_id: str) -> None:
    (answer,) = tape.json("run", "fork", run_id, "--at", "5", "--effects", "stub", "--mutation", '{"say": "no"}')
    child = answer["child_run_id"]
    with library.connect(tape.url) as client:
        client.decisions.record(child, 1, response="wait")

    rows = [row for row in tape.json("run", "diff", run_id, child) if "ledger" in row]
    _, table = tape("run", "diff", run_id, child)

    assert [(row["ledger"], row["place"], row["is_same"]) for row in rows] == [
        ("decision", "0", True),
        ("effect", "decision-0/wire/0", True),
        ("decision", "1", False),
    ]
    assert "of 3 decisions and effects 1 differ" in table and '"paid"' in table


def test_effects_are_replayed_stubbed_or_live(tape: Tape, run_id: str) -> None:
    code, answer = tape("run", "fork", run_id, "--at", "1", "--effects", "sometimes")

    assert code == 2 and "sometimes" in answer
