"""`tape reaction`, `tape task` and `tape work`: output and exit codes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tape.cli.main import run
from tape.work.collected import collected

MODULE = """
import tape

@tape.on("/orders/**", retry_backoff_ms=0, dlq_after_n=2, reaction_id="orders")
def handle(envelope):
    if envelope.payload["n"] == 2:
        raise ValueError("two is not allowed")
    print("handled", envelope.payload["n"])
"""


class Tape:
    """The command on a journal of its own."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        return run(arguments), *self._capsys.readouterr()

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Tape]:
    monkeypatch.setenv("TAPE_STORE", f"sqlite:///{tmp_path / 'tape.db'}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "orders.py").write_text(MODULE)
    yield Tape(capsys)
    sys.modules.pop("orders", None)
    collected.clear()


def test_a_reaction_is_added_listed_shown_and_removed(tape: Tape) -> None:
    (added,) = tape.json("reaction", "add", "rule", "/a/**", "--where", "payload.n > 1", "--max-concurrency", "7")
    (listed,) = tape.json("reaction", "ls")
    (shown,) = tape.json("reaction", "show", "rule")
    (removed,) = tape.json("reaction", "rm", "rule")

    assert added == listed == shown
    assert (shown["predicate_cel"], shown["max_concurrency"], shown["dlq_after_n"]) == ("payload.n > 1", 7, 5)
    assert removed == {"found": True} and tape.json("reaction", "ls") == []


def test_a_reaction_is_paused_and_resumed(tape: Tape) -> None:
    tape.json("reaction", "add", "rule", "/a/**")

    (paused,) = tape.json("reaction", "pause", "rule", "--reason", "maintenance")
    (resumed,) = tape.json("reaction", "resume", "rule")

    assert (paused["paused"], resumed["paused"]) == ("maintenance", "")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("rule", "/a/**/b"), "'**' may only be the last segment"),
        (("rule", "/a", "--where", "1 + 1"), "not bool"),
        (("rule", "/a", "--where", "payload."), "predicate"),
        (("rule", "/a", "--shards", "0"), "num_shards must be 1 to 1,024, not 0"),
        (("rule", "/a", "--publish", "http://x"), "publish_target must be"),
        (("-rule", "/a"), "No such option"),
        (("rule!", "/a"), "reaction_id must be"),
    ],
)
def test_what_is_no_reaction_is_refused_with_the_reason(tape: Tape, arguments: tuple[str, ...], reason: str) -> None:
    code, _, err = tape("reaction", "add", *arguments)

    assert code == 2 and reason.lower() in err.lower()


def test_what_does_not_exist_is_named(tape: Tape) -> None:
    tape("migrate")
    codes = [tape("reaction", "show", "rule")[0], tape("reaction", "rm", "rule")[0], tape("task", "show", "t")[0]]

    assert codes == [4, 4, 4]


@pytest.mark.parametrize(
    "arguments",
    [("reaction", "show", "\udcff"), ("task", "show", "\udcff"), ("task", "replay", "--all", "--limit", "9" * 20)],
)
def test_what_no_store_can_look_for_is_a_mistake_in_the_call(tape: Tape, arguments: tuple[str, ...]) -> None:
    tape("reaction", "add", "rule", "/a/**")

    code, _, error = tape(*arguments)

    assert code == 2 and "internal" not in error


def test_work_runs_the_handlers_of_a_module_and_the_dead_can_be_replayed(tape: Tape) -> None:
    for number in range(3):
        assert tape("publish", "r1", f'{{"n":{number}}}', "--subject", "/orders/new", "--open")[0] == 0

    (worked,) = tape.json("work", "orders", "--once")
    (dead,) = tape.json("task", "ls", "--status", "dlq")
    (shown,) = tape.json("task", "show", dead["task_id"])
    (replayed,) = tape.json("task", "replay", "--reaction", "orders")

    assert worked == {"handled": 4}
    assert (dead["last_error"], dead["attempts"]) == ("ValueError: two is not allowed", 2) and shown["task"] == dead
    assert replayed == {"replayed": [dead["task_id"]]}
    assert len(tape.json("task", "ls", "--status", "done", "--reaction", "orders")) == 2


def test_people_get_tables(tape: Tape) -> None:
    tape("publish", "r1", '{"n":2}', "--subject", "/orders/new", "--open")
    _, worked, _ = tape("work", "orders", "--once")
    _, listed, _ = tape("reaction", "ls")
    _, tasks, _ = tape("task", "ls")

    assert "2 tasks handled" in worked
    assert "active" in listed and "orders" in listed and "/orders/**" in listed
    assert "dlq" in tasks and "two is not allowed" in tasks


def test_explain_prints_why_an_entry_became_a_task_as_json_and_as_text(tape: Tape) -> None:
    tape.json("reaction", "add", "orders", "/orders/**", "--where", "payload.n > 1")
    tape.json("publish", "r1", '{"n": 1}', "--subject", "/orders/new", "--open")
    tape.json("publish", "r1", '{"n": 2}', "--subject", "/orders/new")
    tape("work", "orders", "--once", "--no-register")

    (answer,) = tape.json("reaction", "explain", "orders", "3")
    _, text, _ = tape("reaction", "explain", "orders", "2")

    assert (answer["outcome"], answer["task"]["attempts"]) == ("task", 1)
    assert [(part["text"], part["value"]) for part in answer["parts"]][1] == ("payload.n", "2")
    assert "the predicate does not hold" in text and "payload.n > 1" in text and "false" in text
    assert tape("reaction", "explain", "nobody", "1")[0] == 4 and tape("reaction", "explain", "orders", "99")[0] == 4


def test_a_module_that_is_not_there_is_a_mistake_in_the_call(tape: Tape) -> None:
    code, _, err = tape("work", "nowhere")

    assert code == 2 and "module 'nowhere' cannot be loaded" in err
