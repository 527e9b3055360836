"""The help and the errors of all commands: an example each, fitting a terminal, with the exit codes of the table."""

import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

import anyio
import click
import pytest

from tape.cli import output
from tape.cli.choices import Choices
from tape.cli.completion import SHELLS
from tape.cli.examples import EXAMPLES
from tape.cli.main import COMMANDS, _fail, run, tape
from tape.compose import open_store
from tape.core.errors import TapeError
from tape.core.ids import RunId
from tape.matcher.matcher import Matcher
from tools.docs.reference import WIDTH, commands, error_classes

TREE = {" ".join(path): (command, context) for path, command, context in commands()}
LINES = {path: (command.epilog or "").partition("Example:\n  ")[2] for path, (command, _) in TREE.items()}
TAPE = [str(Path(sys.executable).parent / "tape")]
SHARED = {"--store", "--json", "--unsafe-durability"}

NEXT_WIDTH = "\x1e"
AT_WIDTHS = f"""
import fcntl, struct, sys, termios
from tape.cli.main import run
for columns in sys.argv[1].split(","):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(columns), 0, 0))
    print({NEXT_WIDTH!r}, flush=True)
    run(sys.argv[2:])
"""

every_command = pytest.mark.parametrize("path", TREE)


def made(error: type[TapeError]) -> TapeError:
    """An error of a class, whatever facts it wants."""
    for facts in ((), ("x",), (RunId("r"), 1, 2), ("a", "b", "c"), ("a", "b", 1, 2), (8,)):
        try:
            return error(*facts)
        except TypeError:
            continue
    raise AssertionError(error)


def seen_at(columns: int, *arguments: str, cwd: Path) -> str:
    """What a terminal so wide shows."""
    return seen(columns, [*TAPE, *arguments], cwd)


def shown_at(widths: tuple[int, ...], *arguments: str, cwd: Path) -> dict[int, str]:
    """What a terminal shows at each of its widths; one process runs the command at all of them."""
    command = [sys.executable, "-c", AT_WIDTHS, ",".join(map(str, widths)), *arguments]
    return dict(zip(widths, seen(widths[0], command, cwd).split(NEXT_WIDTH)[1:], strict=True))


def seen(columns: int, command: list[str], cwd: Path) -> str:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "TAPE_STORE": "sqlite:///tape.db"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, cwd=cwd, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while chunk := read(ours):
        shown += chunk
    process.wait()
    os.close(ours)
    return shown.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other side has closed it
        return b""


@every_command
def test_the_help_of_a_command_is_a_sentence(path: str) -> None:
    text = (TREE[path][0].help or "").strip()
    first = " ".join(re.split(r"\n\s*\n", text)[0].split())

    assert re.match("[A-Z]", first) and first.endswith("."), first


@every_command
def test_a_command_teaches_by_an_example(path: str) -> None:
    command, context = TREE[path]

    assert LINES[path] and LINES[path] in command.get_help(context)


def test_no_example_is_for_a_command_that_is_not_there() -> None:
    assert EXAMPLES.keys() <= TREE.keys()


@pytest.mark.parametrize("line", sorted(set(LINES.values()) - {EXAMPLES["tape completion"]}))
def test_an_example_is_understood(line: str) -> None:
    program, *words = shlex.split(line)
    assert program == "tape"
    command: click.Command = tape
    context = click.Context(tape, info_name="tape", obj=Choices())
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None
        command = found
        context = click.Context(command, parent=context, obj=context.obj)

    command.make_context(command.name, words, parent=context.parent)


@every_command
def test_every_option_is_explained(path: str) -> None:
    options = [each for each in TREE[path][0].params if isinstance(each, click.Option)]

    assert [option.name for option in options if not (option.help or "").strip()] == []


@every_command
def test_every_command_takes_the_same_options(path: str) -> None:
    names = {name for parameter in TREE[path][0].params for name in parameter.opts}

    assert names >= SHARED


@every_command
def test_help_fits_a_terminal_and_has_no_programmers_word(path: str) -> None:
    command, context = TREE[path]
    text = command.get_help(context)
    lines = [line for line in text.splitlines() if LINES[path] not in line]

    assert [line for line in lines if output.width(line) > WIDTH] == []
    assert "INTEGER" not in text and "FLOAT" not in text


def test_the_commands_that_are_listed_are_those_there_are() -> None:
    assert {path.split()[1] for path in TREE if " " in path} == set(COMMANDS)


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_a_command_ends_as_the_error_table_says(error: type[TapeError], capsys: pytest.CaptureFixture[str]) -> None:
    raised = made(error)

    code = _fail(raised, is_json=True)

    answer = json.loads(capsys.readouterr().err)
    assert (code, answer["exit_code"], answer["code"]) == (error.exit_code, error.exit_code, raised.code)
    assert answer["status"] == error.http_status


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_prints_a_script_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert f"_TAPE_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("tape jou", "journal"),
        ("tape outbox re", "replay"),
        ("tape task ls --sta", "--status"),
        ("tape completion f", "fish"),
    ],
)
def test_names_are_completed(words: str, wanted: str) -> None:
    asked = {"_TAPE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}

    ended = subprocess.run(TAPE, env={**os.environ, **asked}, capture_output=True, text=True, check=False)

    assert f"plain,{wanted}" in ended.stdout.splitlines()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a journal in which names are long and texts contain control characters."""
    tmp_path = tmp_path_factory.mktemp("many")
    store = ["--store", f"sqlite:///{tmp_path / 'tape.db'}"]
    for number in range(3):
        payload = json.dumps({"text": "\x1b[31mred\x07 " + "long " * 40})
        assert run(["publish", f"a-run-with-a-rather-long-name-{number}", payload, "--open", *store]) == 0
    assert run(["reaction", "add", "a-reaction-with-a-long-name", "/tape/event/**", "--agent", "reviewer", *store]) == 0
    assert run(["reaction", "add", "another-one", "/tape/event/**", "--publish", "nats://events", *store]) == 0
    assert run(["value", "set", "a-namespace-with-a-long-name", "fx", json.dumps("long " * 40), *store]) == 0
    assert run(["outbox", "migrate", *store]) == 0
    anyio.run(match, store[1])
    return tmp_path


async def match(url: str) -> None:
    """Makes tasks of what reactions match."""
    async with open_store(url) as store:
        matcher = Matcher(store)
        while await matcher.step():
            pass


LISTS = [
    "run ls",
    "run show a-run-with-a-rather-long-name-1",
    "tail --no-follow",
    "reaction ls",
    "reaction show a-reaction-with-a-long-name",
    "reaction explain a-reaction-with-a-long-name 2",
    "task ls",
    "value history a-namespace-with-a-long-name fx",
    "outbox stats",
    "lake status",
    "doctor",
]


@pytest.mark.parametrize("arguments", [words.split() for words in LISTS], ids=" ".join)
def test_what_is_listed_fits_the_terminal(arguments: list[str], many: Path) -> None:
    shown = shown_at((40, 60, 80, 120), *arguments, cwd=many)
    lines = [(columns, line) for columns, text in shown.items() for line in text.splitlines()]
    too_wide = [(columns, line) for columns, line in lines if output.width(line) > columns]

    assert all(text.split() for text in shown.values())
    assert [line for columns, line in too_wide if max(map(output.width, line.split())) <= columns] == []


def test_colours_are_shown_on_a_terminal_and_nowhere_else(many: Path) -> None:
    environment = {**os.environ, "TAPE_STORE": "sqlite:///tape.db"}

    piped = subprocess.run([*TAPE, "doctor"], cwd=many, env=environment, capture_output=True, text=True, check=False)

    assert "\x1b[32m" in seen_at(80, "doctor", cwd=many)
    assert "\x1b" not in piped.stdout + piped.stderr


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_payload_never_moves_the_terminal(is_terminal: bool, many: Path) -> None:
    command = ["tail", "--no-follow"]
    environment = {**os.environ, "TAPE_STORE": "sqlite:///tape.db"}

    piped = subprocess.run([*TAPE, *command], cwd=many, env=environment, capture_output=True, text=True, check=False)
    shown = seen_at(100, *command, cwd=many) if is_terminal else piped.stdout

    assert "\x1b[31mred" not in shown and "\x07" not in shown
    assert "red" in shown
