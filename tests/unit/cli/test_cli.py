"""The command line: output, streams and exit codes."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from tape.cli import output
from tape.cli.doctor.command import without_credentials
from tape.cli.main import run
from tape.compose import open_journal, open_store
from tape.core.event import Columns, Event
from tape.core.ids import GlobalSeq


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Tape = Callable[..., Answer]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tape.db'}"


@pytest.fixture
def tape(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tape:
    """The command, on a journal of its own."""
    monkeypatch.setenv("TAPE_STORE", url)

    def answer(*arguments: str) -> Answer:
        return Answer(run(arguments), *capsys.readouterr())

    return answer


@pytest.fixture
def ten(tape: Tape, tmp_path: Path) -> Tape:
    """The same with ten entries in run r1."""
    (tmp_path / "ten.jsonl").write_text("\n".join(f'{{"n": {n}}}' for n in range(1, 11)))
    tape("publish", "r1", f"@{tmp_path / 'ten.jsonl'}", "--open", "--subject", "/numbers/small")
    return tape


def test_publishing_prints_where_the_event_stands(tape: Tape) -> None:
    tape("publish", "r0", "0", "--open")

    answer = tape("publish", "r1", '{"a": 1}', "--open")

    assert answer == (0, "r1  seq 1  global_seq 2\n", "")


def test_a_run_that_is_not_open_must_be_opened(tape: Tape) -> None:
    missing = tape("publish", "r1", "1")
    tape("migrate")
    answer = tape("publish", "r1", "1")

    assert (missing.code, answer.code) == (2, 4)
    assert missing.err.endswith("see --store, or publish with --open to create it\n")
    assert answer.err == "tape: run 'r1' is not open: there is no such run; publish with --open to open it\n"


def test_the_same_key_again_appends_nothing(tape: Tape) -> None:
    first = tape("publish", "r1", "1", "--open", "--key", "k")

    again = tape("publish", "r1", "1", "--open", "--key", "k")

    assert first == again
    assert len(tape("tail", "--no-follow").lines) == 1


def test_a_seq_that_was_not_expected_is_a_conflict(ten: Tape) -> None:
    answer = ten("publish", "r1", "1", "--expected-seq", "9")

    assert answer.code == 5
    assert "at seq 10, not 9" in answer.err


def test_a_file_is_one_event_a_line(tape: Tape, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(map(str, range(2500))) + "\n\n")

    answer = tape("publish", "r1", f"@{file}", "--open")

    assert answer == (0, "r1  seq 1–2500  global_seq 1–2500\n", "")


def test_a_file_with_a_key_is_one_request(tape: Tape, tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    file.write_text("\n".join(map(str, range(1001))))

    answer = tape("publish", "r1", f"@{file}", "--open", "--key", "k")

    assert answer.code == 2
    assert "at most 1,000 events" in answer.err


def test_a_text_on_stdin_is_one_event(tape: Tape, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a":\n 1}\n')))

    answer = tape("publish", "r1", "-", "--open", "--json")

    assert json.loads(answer.out) == {"run_id": "r1", "seq": 1, "global_seq": 1}


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 65 + "]" * 65, '"\\u0000"', "1e999"])
def test_bad_json_is_refused_and_leaves_no_trace(text: str, tape: Tape, tmp_path: Path) -> None:
    answer = tape("publish", "r1", text, "--open")

    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_is_named(tape: Tape, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("1\n2\n{\n")

    answer = tape("publish", "r1", f"@{file}", "--open")

    assert answer.code == 2
    assert answer.err.startswith("tape: line 3 of 'bad.jsonl': ")


@pytest.mark.parametrize(
    ("payload", "reason"), [("@none.jsonl", "cannot read 'none.jsonl'"), ("@/dev/null", "nothing")]
)
def test_publishing_nothing_is_an_error(payload: str, reason: str, tape: Tape) -> None:
    answer = tape("publish", "r1", payload, "--open")

    assert answer.code == 2
    assert reason in answer.err


def test_json_has_the_columns_of_the_journal(ten: Tape) -> None:
    lines = ten("tail", "--no-follow", "--json").lines

    entries = [json.loads(line) for line in lines]

    assert [tuple(entry) for entry in entries] == [Columns._fields] * 10
    assert [json.loads(entry["payload_json"])["n"] for entry in entries] == list(range(1, 11))


def test_bytes_are_printed_in_base64(tape: Tape, url: str) -> None:
    event = Event(run_id="r1", payload=b"\x00\xff", content_type="application/octet-stream")
    anyio.run(partial(append, url, event))

    entry = json.loads(tape("tail", "--no-follow", "--json").out)

    assert entry["payload_bytes"] == "AP8="
    assert "<2 bytes of application/octet-stream>" in tape("tail", "--no-follow").out


@pytest.mark.parametrize(
    ("arguments", "seen"),
    [
        (["--from", "8"], [9, 10]),
        (["--from", "10"], []),
        (["--run", "r1", "--from", "8"], [8, 9, 10]),
        (["--run", "r1", "/numbers/large"], []),
        (["/numbers/*", "--where", "payload.n > 9"], [10]),
        (["--run", "r2"], []),
    ],
)
def test_a_tail_begins_where_its_options_say(arguments: list[str], seen: list[int], ten: Tape) -> None:
    answer = ten("tail", "--no-follow", "--json", *arguments)

    assert [json.loads(line)["global_seq"] for line in answer.lines] == seen


def test_a_position_beyond_the_head_is_refused(ten: Tape) -> None:
    answer = ten("tail", "--no-follow", "--from", "11")

    assert answer == (2, "", "tape: the journal is at 10; there is no 11 yet\n")


@pytest.mark.parametrize("arguments", [["--from", "0"], ["--run", "r1", "--from", "1"]])
def test_a_gap_ends_a_tail_with_7(arguments: list[str], ten: Tape, url: str) -> None:
    anyio.run(partial(trim, url, 4))

    answer = ten("tail", "--no-follow", *arguments)

    assert (answer.code, answer.out) == (7, "")
    assert "1 to 4 are gone" in answer.err


@pytest.mark.parametrize("arguments", [[], ["--run", "r1"]])
def test_whoever_asks_for_all_there_is_gets_it_behind_a_gap(arguments: list[str], ten: Tape, url: str) -> None:
    anyio.run(partial(trim, url, 4))

    answer = ten("tail", "--no-follow", "--json", *arguments)

    assert [json.loads(line)["global_seq"] for line in answer.lines] == [5, 6, 7, 8, 9, 10]
    assert "1 to 4 are gone" in answer.err


def test_json_may_be_asked_for_before_and_after_the_command(ten: Tape) -> None:
    assert ten("--json", "tail", "--no-follow") == ten("tail", "--no-follow", "--json")


def test_an_error_is_a_problem_in_json(tape: Tape) -> None:
    tape("migrate")
    problem = json.loads(tape("publish", "r1", "1", "--json").err)

    assert (problem["code"], problem["status"], problem["exit_code"]) == ("run_not_found", 404, 4)


@pytest.mark.parametrize("arguments", [["frob"], ["tail", "--frob"], ["publish", "r1"], ["journal"], ["--store"]])
def test_a_wrong_call_is_one_line_that_points_to_help(arguments: list[str], tape: Tape) -> None:
    answer = tape(*arguments)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("tape: ") and answer.err.endswith(" --help\n") and answer.err.count("\n") == 1


def test_a_store_may_be_named_by_option(tape: Tape, tmp_path: Path) -> None:
    tape("publish", "r1", "1", "--open", "--store", f"sqlite:///{tmp_path / 'other.db'}")

    assert (tmp_path / "other.db").exists()
    assert not (tmp_path / "tape.db").exists()


def test_migrating_prints_the_applied_steps(tape: Tape) -> None:
    first = tape("migrate")

    again = tape("migrate")

    assert first.lines[0].startswith("applied  0001 ")
    assert again.lines == ["the schema is up to date"]


def test_migrating_to_a_new_epoch_prints_a_larger_one_and_keeps_the_entries(ten: Tape) -> None:
    before = json.loads(ten("migrate", "--json").lines[0])["epoch"]

    answer = ten("migrate", "--new-epoch", "--json")

    assert json.loads(answer.lines[0])["epoch"] > before
    assert ten("journal", "verify").code == 0


def test_a_doctor_finds_a_new_journal_well(ten: Tape, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)

    answer = ten("doctor", "--json")

    findings = {found["subject"]: found for found in map(json.loads, answer.lines)}
    assert answer.code == 0
    assert {found["status"] for found in findings.values()} == {"ok"}
    assert findings["journal"]["value"].startswith("10 entries, floor 1, head 10")


def test_a_doctor_warns_of_a_file_others_can_read(ten: Tape, tmp_path: Path) -> None:
    (tmp_path / "tape.db").chmod(0o644)

    answer = ten("doctor")

    (line,) = (line for line in answer.lines if "file mode" in line)
    assert line.startswith("warn") and "chmod 600" in line


def test_a_doctor_fails_on_a_file_that_is_no_journal(tape: Tape, tmp_path: Path) -> None:
    (tmp_path / "tape.db").write_text("It was a dark and stormy night. " * 200)

    answer = tape("doctor")

    assert answer.code == 1
    assert any(line.startswith("fail  journal") for line in answer.lines)


def test_a_doctor_creates_nothing(tape: Tape, tmp_path: Path) -> None:
    assert tape("doctor").code == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:secret@db:5432/tape?sslmode=require", "postgresql://db:5432/tape?sslmode=require"),
        ("postgresql://db/tape?password=secret&sslmode=require", "postgresql://db/tape?sslmode=require"),
        ("sqlite:////var/tape.db", "sqlite:////var/tape.db"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "\\u{1b}[2J"),
        ("\x1b]0;x\x07", "\\u{1b}]0;x\\u{7}"),
        ("a\r\nb", "a\\u{d}\\u{a}b"),
        ("a\u202eb", "a\\u{202e}b"),
        ("a\u200bb\ufeff", "a\\u{200b}b\\u{feff}"),
        ("\x9b31m", "\\u{9b}31m"),
        ("\u3164", "\\u{3164}"),
        ("Zürich 東京 🚆", "Zürich 東京 🚆"),
    ],
)
def test_what_cannot_be_seen_is_spelt_out(text: str, shown: str) -> None:
    assert output.escape(text) == shown


@pytest.mark.parametrize(("text", "cells", "shown"), [("abcdef", 4, "abc…"), ("東京駅", 4, "東…"), ("ab", 2, "ab")])
def test_a_text_is_cut_by_the_cells_it_takes(text: str, cells: int, shown: str) -> None:
    assert output.fit(text, cells) == shown


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda stream=None: True)
    monkeypatch.setenv("TERM", "xterm")

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.paint("x", "red") == "\x1b[31mx\x1b[0m"

    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("x", "red") == "x"


def test_help_loads_no_journal() -> None:
    program = "import sys; from tape.cli.main import run; run(['--help']); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) & {"anyio", "asyncio", "msgspec", "sqlite3"} == set()


def test_a_reader_that_goes_away_ends_it_quietly(ten: Tape, url: str) -> None:
    source, sink = os.pipe()
    os.close(source)

    done = subprocess.run(command("tail", "--no-follow", url=url), stdout=sink, stderr=subprocess.PIPE, check=False)

    os.close(sink)
    assert (done.returncode, done.stderr) == (141, b"")


def command(*arguments: str, url: str) -> list[str]:
    return [sys.executable, "-m", "tape.cli.main", *arguments, "--store", url]


async def append(url: str, event: Event) -> None:
    async with open_journal(url) as journal:
        await journal.append(event, open=True)


async def trim(url: str, through: int) -> None:
    async with open_store(url) as store:
        await store.retention.trim(GlobalSeq(through))
