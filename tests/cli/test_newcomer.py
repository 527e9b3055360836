"""Errors that a new user gets: an empty store, a mistyped name, an unclear number."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tape.cli.main import run
from tape.outbox import OutboxEvent, publish
from tests.cli.test_help import seen_at

EVENT = "0190b7a8-3f5c-7c1d-9a8e-0f2b4c6d8e01"
EMPTY = [["run", "ls"], ["task", "ls"], ["reaction", "ls"], ["outbox", "ls"], ["tail", "--no-follow"]]
BIN = Path(sys.executable).parent


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A journal with nothing in it, in a folder with nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TAPE_STORE", "sqlite:///tape.db")
    assert run(["migrate"]) == 0
    return "sqlite:///tape.db"


def failed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run(arguments)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["ls", "stats", f"show {EVENT}", f"replay {EVENT}", "replay --failed", "hand-over 1 --generation 2", "retention"],
)
def test_without_an_outbox_the_error_says_how_to_make_one(
    words: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = failed(capsys, "outbox", *words.split())

    assert code == 4 and "tape outbox migrate" in error


@pytest.mark.parametrize(
    ("words", "code", "way_on"),
    [
        ("run show nobody", 4, "tape run ls"),
        ("task show nothing", 4, "tape task ls"),
        ("task replay nothing", 4, "tape task ls"),
        ("reaction show nobody", 4, "tape reaction ls"),
        ("reaction pause nobody", 4, "nobody"),
        ("value get a b", 4, "a/b"),
        ("publish order-1 1", 4, "--open"),
        ("lake query x", 4, "tape lake sync"),
        ("tail --from 7", 2, "the journal is at 0"),
        ("tail --where 1+", 2, "Syntax error"),
        ("publish order-1 {", 2, "JSON"),
        ("work shop.reactions", 2, "module 'shop.reactions' cannot be loaded"),
        ("outbox contracts check shop.contracts", 2, "module 'shop.contracts' cannot be loaded"),
        ("frobnicate", 2, "tape --help"),
        ("tail --form 7", 2, "you may mean --from or"),
        ("doctor --store postgresql://nobody@127.0.0.1:9/x", 1, ""),
        ("tail --store postgresql://nobody@127.0.0.1:9/x", 9, "nothing was written"),
        ("tail --store redis://127.0.0.1:9", 9, "nothing was written"),
    ],
)
def test_a_mistake_ends_as_the_error_table_says_and_shows_the_way_on(
    words: str, code: int, way_on: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, error = failed(capsys, *words.split())

    assert ended == code and way_on in error
    assert error.count("\n") == (0 if code == 1 else 1)


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_list_is_noted_on_a_terminal_only(words: list[str], store: str, tmp_path: Path) -> None:
    assert run(["outbox", "migrate"]) == 0
    piped = subprocess.run([BIN / "tape", *words], capture_output=True, text=True, check=True)

    assert piped.stdout + piped.stderr == ""
    assert "there is nothing" in seen_at(80, *words, cwd=tmp_path)


def test_a_reaction_is_shown_in_words(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reaction", "add", "orders", "/orders/**", "--agent", "clerk"]) == 0
    shown = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    facts = {name: value for name, value in shown if name != "applied"}

    assert (facts["handler_kind"], facts["subject_pattern"], facts["agent_app"]) == ("agent", "/orders/**", "clerk")
    assert facts["created_at"].endswith(" UTC") and "publish_target" not in facts


def test_an_event_of_the_outbox_is_shown_as_the_json_it_is(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["outbox", "migrate"]) == 0
    event = OutboxEvent(event_type="orders.placed", source="orders", payload={"gift": True, "to": "Ænne"})
    with sqlite3.connect("tape.db") as connection:
        publish(event, connection)
    connection.close()
    capsys.readouterr()

    assert run(["outbox", "show", str(event.event_id)]) == 0

    assert '{"gift": true, "to": "Ænne"}' in capsys.readouterr().out


def test_a_lake_that_is_not_there_has_no_version(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["lake", "status"]) == 0

    assert "version" not in capsys.readouterr().out


BASH = """
eval "$(tape completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tape_completion tape; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# compadd and _describe are what zsh shows a list with, which takes a terminal.
ZSH = """
compdef() {{ [[ $2 == tape ]] && registered=$1 }}
compadd() {{ print -rl -- $completions }}
_describe() {{ print -rl -- ${{completions_with_descriptions%%:*}} }}
eval "$(tape completion zsh)"
words=({words}); CURRENT=$#words; $registered
"""
FISH = """
tape completion fish | source
complete -C '{words}' | string split -f1 \\t
"""


@pytest.mark.parametrize(
    ("shell", "script"), [(["bash", "-c"], BASH), (["zsh", "-fc"], ZSH), (["fish", "--no-config", "-c"], FISH)]
)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("tape jou", "journal"),
        ("tape outbox rep", "replay"),
        ("tape task ls --sta", "--status"),
        ("tape completion f", "fish"),
    ],
)
def test_a_shell_completes_what_is_typed(shell: list[str], script: str, words: str, wanted: str) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"no {shell[0]} here; install one")
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    ended = subprocess.run(
        [*shell, script.format(words=words)], env=environment, capture_output=True, text=True, check=False
    )

    assert (ended.stdout.split(), ended.stderr) == ([wanted], "")


def test_json_stays_the_columns_of_the_table(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["reaction", "add", "orders", "/orders/**", "--agent", "clerk", "--json"]) == 0

    answer = json.loads(capsys.readouterr().out)
    assert answer["handler_kind"] == 1 and isinstance(answer["created_at_ms"], int)
