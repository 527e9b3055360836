"""`tape run`: output and exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tape.cli import output
from tape.cli.main import run

Lines = list[dict[str, Any]]


class Tape:
    """The command on a journal of its own, answering programs."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        return run(arguments), *self._capsys.readouterr()

    def json(self, *arguments: str) -> Lines:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def fork(self, parent: str, at_seq: int, *arguments: str) -> str:
        (answer,) = self.json("run", "fork", parent, "--at", str(at_seq), *arguments)
        assert (answer["parent_run_id"], answer["at_seq"]) == (parent, at_seq)
        return str(answer["child_run_id"])


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tape:
    monkeypatch.setenv("TAPE_STORE", f"sqlite:///{tmp_path / 'tape.db'}")
    monkeypatch.chdir(tmp_path)
    command = Tape(capsys)
    command("publish", "parent", '{"n": 1}', "--open")
    command("publish", "parent", '{"n": 2}')
    return command


def test_a_fork_stays_open_for_whoever_goes_on_in_it(tape: Tape) -> None:
    child = tape.fork("parent", 1, "--mutation", '{"wind": 9}', "--reason", "what if")

    (facts,) = tape.json("run", "show", child)
    entries = tape.json("tail", "--run", child, "--no-follow")
    assert (facts["status"], facts["n_events"]) == ("running", 3)
    assert facts["lineage"] == [{"run_id": "parent", "through_seq": 1}]
    assert [entry["type"] for entry in entries] == ["message", "fork", "mutation"]


def test_a_producer_plays_a_fork_to_its_end(tape: Tape) -> None:
    child = tape.fork("parent", 0, "--producer", "arena", "--turns", "2")

    (facts,) = tape.json("run", "show", child)
    assert (facts["status"], facts["n_events"]) == ("complete", 1 + 2 * 20)


def test_a_producer_is_loaded_from_where_the_command_is_typed(
    tape: Tape, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place not in ("", str(tmp_path))])
    (tmp_path / "cli_players.py").write_text(
        "import tape\n@tape.producer('dice')\ndef roll(prefix, mutation, n_turns, sink):\n"
        "    sink.emit(tape.Event(run_id=sink.run_id, type='rolled', payload=len(prefix)))\n"
    )

    child = tape.fork("parent", 2, "--producer", "dice", "--producers", "cli_players")

    assert tape.json("tail", "--run", child, "--no-follow")[-1]["type"] == "rolled"


def test_a_producer_that_fails_ends_the_command_with_1_and_the_reason(tape: Tape) -> None:
    tape("publish", "parent", "7", "--type", "turn_start")

    code, out, err = tape("run", "fork", "parent", "--at", "3", "--producer", "arena")

    assert (code, "forked from parent at seq 3" in out) == (1, True)
    assert err == "tape: the producer failed: Corrupt: a turn_start holds no world\n"


def test_runs_are_listed_open_ones_first(tape: Tape) -> None:
    tape("run", "cancel", "parent")
    child = tape.fork("parent", 1)

    _, out, _ = tape("run", "ls")

    assert [line.split() for line in out.splitlines()] == [
        ["running", child, "2", "events", "from", "parent"],
        ["complete", "parent", "3", "events"],
    ]


def test_runs_are_listed_by_what_they_are(tape: Tape) -> None:
    tape("run", "cancel", "parent")
    child = tape.fork("parent", 1)

    def listed(*options: str) -> list[str]:
        return [facts["run_id"] for facts in tape.json("run", "ls", *options)]

    assert listed("--status", "open") == listed("--parent", "parent") == [child]
    assert listed("--status", "complete") == listed("--prefix", "parent", "--closed-after", "2026-01-01") == ["parent"]
    assert listed("--order", "newest") == [child, "parent"]
    assert listed("--order", "oldest", "--limit", "1") == ["parent"]
    assert listed("--opened-before", "2026-01-01T00:00:00Z") == listed("--app", "nobody", "--label", "x") == []


def test_a_list_of_runs_goes_on_at_the_cursor_that_it_ends_with(tape: Tape) -> None:
    child = tape.fork("parent", 1)

    _, first, note = tape("run", "ls", "--order", "newest", "--limit", "1")
    _, second, end = tape("run", "ls", "--order", "newest", "--limit", "1", "--cursor", note.split()[-1])

    assert (first.split()[1], second.split()[1]) == (child, "parent")
    assert (note.startswith("tape: there are more: --cursor "), end) == (True, "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--opened-after", "yesterday"), "is not a time such as 2026-05-21"),
        (("--status", "open", "--closed-before", "2026-05-21"), "a run that is open has no time of closing"),
        (("--prefix", "a/b"), "prefix must be"),
    ],
)
def test_a_filter_of_runs_that_cannot_be_is_a_wrong_use(tape: Tape, options: tuple[str, ...], message: str) -> None:
    code, _, err = tape("run", "ls", *options)

    assert (code, message in err) == (2, True)


def test_a_cancelled_run_has_a_last_entry_and_ends(tape: Tape) -> None:
    answer = tape("run", "cancel", "parent", "--reason", "enough")

    (*_, last) = tape.json("tail", "--run", "parent", "--no-follow")
    assert answer == (0, "run_id    parent\nlast_seq  3\n", "")
    assert (last["kind"], last["type"], last["payload_json"]) == ("run", "cancelled", '{"reason":"enough"}')
    assert last["subject"] == "/tape/run/cancelled/_/_/_/parent"


def test_two_runs_are_compared_from_where_they_part(tape: Tape) -> None:
    child = tape.fork("parent", 1, "--mutation", "{}")
    tape("publish", child, '{"n": 3}')

    _, out, _ = tape("run", "diff", "parent", child)
    summary, *rows = tape.json("run", "diff", "parent", child)

    first, heads, *lines = [line.split() for line in out.splitlines()]
    assert " ".join(first) == f"parent and {child} share 1 entry; of 3 places after that 3 differ"
    assert heads[:5] == ["A", "B", "type", "field", "parent"]
    assert lines[-1] == ["2", "4", "message", "n", "2", "3"]
    assert (summary["shared"], summary["rows"], summary["differing"]) == (1, 3, 3)
    assert rows[-1]["changes"] == [{"path": "n", "one": 2, "other": 3}]
    assert (rows[1]["one"], rows[1]["other"]["type"], rows[1]["other"]["payload"]) == (None, "mutation", {})


def test_a_long_table_is_cut_with_a_note(tape: Tape) -> None:
    child = tape.fork("parent", 0)

    _, out, _ = tape("run", "diff", "parent", child, "--limit", "2")

    assert len(out.splitlines()) == 5 and out.endswith("… and more; --limit shows it\n")


def test_a_table_fits_a_terminal_of_80_columns_and_shows_where_texts_differ(
    tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "columns", lambda: 80)
    child = tape.fork("parent", 1)
    long = {"a": {"rather": {"long": {"way": {"down": "the same beginning and then %s"}}}}}
    tape("publish", "parent", json.dumps(long) % "this", "--type", "world_mutation")
    tape("publish", child, "1")
    tape("publish", child, json.dumps(long) % "that\u202e", "--type", "world_mutation")

    _, out, _ = tape("run", "diff", "parent", child)

    _, _, _, *lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].split() == ["3", "4", "world_mutation", "…r.long.way.down", "…en", 'this"', "…en", "that\\u{202e…"]


def test_a_run_does_not_differ_from_itself(tape: Tape) -> None:
    assert tape("run", "diff", "parent", "parent")[1] == "parent and parent share 2 entries, and neither has more\n"


@pytest.mark.parametrize(
    "arguments",
    [("show", "nope"), ("fork", "nope", "--at", "0"), ("cancel", "nope"), ("diff", "parent", "nope")],
    ids=lambda arguments: arguments[0],
)
def test_a_run_that_is_not_there_is_4(tape: Tape, arguments: tuple[str, ...]) -> None:
    answer = tape("run", *arguments)

    assert answer == (4, "", "tape: there is no run 'nope'; tape run ls lists those there are\n")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--at", "3"), "can be forked at 0 to 2, not at 3"),
        (("--at", "1", "--turns", "201"), "n_turns is 0 to 200, not 201"),
        (("--at", "1", "--producer", "nobody"), "there is no producer 'nobody' here; there are 'arena'"),
        (("--at", "1", "--mutation", "{"), "JSON"),
        (("--at", "1", "--producer", "arena", "--mutation", '{"gods": 1}'), "producer 'arena' refuses the mutation"),
    ],
)
def test_what_cannot_be_forked_is_2_and_leaves_nothing(tape: Tape, arguments: tuple[str, ...], why: str) -> None:
    code, out, err = tape("run", "fork", "parent", *arguments)

    assert (code, out) == (2, "") and why in err
    assert [run["run_id"] for run in tape.json("run", "ls")] == ["parent"]
