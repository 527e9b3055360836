"""The first hour of a new user: publish, read, follow, verify, and see what errors look like."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.deadlines import DEADLINE_S
from tests.servers import forked

HOSTILE = "\x1b[2J \x1b]0;x\x07 \r\n \u202e \u200b"

Done = subprocess.CompletedProcess[str]
Tape = Callable[..., Done]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A new user's environment: no setting, and an empty current folder."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}


@pytest.fixture
def tape(tmp_path: Path, environment: dict[str, str]) -> Tape:
    def run(*arguments: str, **more: str) -> Done:
        return forked.run("tape.cli.main", arguments, folder=tmp_path, environment={**environment, **more})

    return run


@pytest.fixture
def nine(tape: Tape, tmp_path: Path) -> Tape:
    """The same after nine entries were published to runs a and b."""
    (tmp_path / "events.jsonl").write_text("\n".join(json.dumps({"text": f"needle {n}"}) for n in range(1, 6)))
    tape("publish", "a", "@events.jsonl", "--open")
    (tmp_path / "events.jsonl").write_text("\n".join(json.dumps({"text": f"needle {n}"}) for n in range(6, 10)))
    tape("publish", "b", "@events.jsonl", "--open")
    return tape


@pytest.fixture
def follower(nine: Tape, tmp_path: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A tail of run a that has printed its first entry and follows."""
    with subprocess.Popen(
        command("tail", "--run", "a", "--json"),
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout and process.stdout.readline()
        yield process
        process.kill()


def test_tail_prints_what_was_published(tape: Tape) -> None:
    published = tape("publish", "hello", '{"text": "good morning"}', "--open")

    seen = tape("tail", "--no-follow")

    assert published.stdout == "hello  seq 1  global_seq 1\n"
    assert re.fullmatch(r" +1  \d\d:\d\d:\d\d\.\d{3}  hello +1  message +\{\"text\":\"good morning\"\}\n", seen.stdout)


def test_a_tail_follows_what_another_process_publishes(nine: Tape, follower: subprocess.Popen[str]) -> None:
    nine("publish", "a", '"news"')

    assert follower.stdout is not None
    seen = [json.loads(follower.stdout.readline())["seq"] for _ in range(5)]
    assert seen == [2, 3, 4, 5, 6]


def test_an_interrupted_tail_ends_quietly_with_130(follower: subprocess.Popen[str]) -> None:
    follower.send_signal(signal.SIGINT)

    _, errors = follower.communicate(timeout=DEADLINE_S)

    assert (follower.returncode, errors) == (130, "")


def test_verify_accepts_an_undamaged_journal(nine: Tape) -> None:
    answer = nine("journal", "verify")

    assert answer.returncode == 0
    assert answer.stdout == "ok  9 entries, 1 to 9: dense, in order, every byte as it was written\n"


@pytest.mark.parametrize("bit", [0x01, 0x80])
def test_verify_names_the_entry_with_a_flipped_bit(bit: int, nine: Tape, tmp_path: Path) -> None:
    flip(tmp_path, b"needle 4", bit)

    answer = nine("journal", "verify")

    assert answer.returncode == 8
    assert answer.stdout.startswith("fault  entry 4  run a  seq 4  ")
    assert answer.stdout.endswith("damaged  9 entries, 1 to 9: 1 fault\n")


def test_a_flipped_bit_affects_only_its_entry(nine: Tape, tmp_path: Path) -> None:
    flip(tmp_path, b"needle 4", 0x01)

    before, after = nine("tail", "--no-follow", "--json"), nine("tail", "--no-follow", "--json", "--from", "4")

    assert before.returncode == 8
    assert "entry 4" in before.stderr and "--from 4" in before.stderr
    assert positions(before) + positions(after) == [1, 2, 3, 5, 6, 7, 8, 9]


def test_verify_names_the_entry_with_a_flipped_bit_in_an_index(nine: Tape, tmp_path: Path) -> None:
    key = b"\x01a\x03\x03"  # run a, seq 3, position 3, as the index holds it
    flip(tmp_path, key, 0x40, at=len(key) - 1)

    answer = nine("journal", "verify")

    assert answer.returncode == 8
    assert "fault  entry 3  run a  seq 3  the index does not have it" in answer.stdout


def test_a_file_that_is_not_a_journal_exits_with_8(tape: Tape, tmp_path: Path) -> None:
    (tmp_path / "night.db").write_text("It was a dark and stormy night. " * 200)

    answer = tape("tail", "--store", "sqlite:///night.db")

    assert (answer.returncode, answer.stdout) == (8, "")
    assert answer.stderr == "tape: the database file is damaged (file is not a database)\n"


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_hostile_text_is_printed_escaped(flags: list[str], tape: Tape) -> None:
    tape("publish", "r1", json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False), "--open")

    answer = tape("tail", "--no-follow", *flags)

    assert answer.stdout.count("\n") == 1
    assert answer.stdout.removesuffix("\n").isprintable()


@pytest.mark.parametrize("where", ["run", "--type", "--subject", "--key", "pattern", "--where", "--store"])
def test_an_error_with_hostile_text_is_one_escaped_line(where: str, tape: Tape) -> None:
    calls = {
        "run": ["publish", HOSTILE, "1", "--open"],
        "pattern": ["tail", HOSTILE],
        "--where": ["tail", "--where", HOSTILE],
        "--store": ["tail", "--store", HOSTILE],
    }

    answer = tape(*calls.get(where, ["publish", "r1", "1", "--open", where, HOSTILE]))

    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("tape: ") and answer.stderr.removesuffix("\n").isprintable()


def test_an_unknown_variable_is_an_error(tape: Tape) -> None:
    answer = tape("tail", "--no-follow", TAPE_SOTRE="sqlite:///x.db")

    assert answer.returncode == 2
    assert answer.stderr.startswith("tape: unknown setting TAPE_SOTRE")


def test_weaker_durability_needs_a_second_flag(tape: Tape) -> None:
    url = "sqlite:///x.db?synchronous=normal"

    refused = tape("publish", "r1", "1", "--open", "--store", url)
    accepted = tape("publish", "r1", "1", "--open", "--store", url, "--unsafe-durability")

    assert (refused.returncode, accepted.returncode) == (2, 0)
    assert "--unsafe-durability" in refused.stderr


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tape.cli.main", *arguments]


def positions(answer: Done) -> list[int]:
    return [json.loads(line)["global_seq"] for line in answer.stdout.splitlines()]


def flip(folder: Path, stored: bytes, bit: int, at: int = 0) -> None:
    """Flips a bit in the file of a journal that no process has open."""
    file = folder / ".tape" / "tape.db"
    content = bytearray(file.read_bytes())
    content[content.index(stored) + at] ^= bit
    file.write_bytes(content)
