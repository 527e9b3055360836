"""Every command that a sentence or table of a page names exists, with its options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from tape.cli.choices import Choices
from tape.cli.main import tape
from tests.architecture.tree import ROOT
from tests.docs.blocks import paths

_markdown = MarkdownIt("commonmark").enable("table")
_OPTION = re.compile(r"--[a-z][a-z-]*")


def named(text: str) -> Iterator[str]:
    """The commands in a page's sentences and tables."""
    for token in _markdown.parse(text):
        for child in token.children or ():
            if child.type == "code_inline" and re.match(r"tape [a-z]", child.content):
                yield child.content


def unknown(line: str) -> list[str]:
    """The subcommands and options of a command line that do not exist."""
    command: click.Command = tape
    context = click.Context(tape, info_name="tape", obj=Choices())
    words = shlex.split(line.replace("'", "’"))[1:]
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words[0])
        if found is None:
            return [words[0]]
        command, words = found, words[1:]
    known = {name for parameter in command.params for name in parameter.opts}
    return [option for option in _OPTION.findall(line) if option not in known | {"--help"}]


@pytest.mark.parametrize("path", paths(), ids=str)
def test_a_command_that_a_page_names_exists(path: Path) -> None:
    found = {line: unknown(line) for line in named((ROOT / path).read_text())}

    assert {line: missing for line, missing in found.items() if missing} == {}


def test_commands_are_found_where_pages_name_them() -> None:
    assert sum(len(list(named((ROOT / path).read_text()))) for path in paths()) > 50


@pytest.mark.parametrize(
    ("line", "missing"),
    [("tape lake sink", ["sink"]), ("tape tail --form 1", ["--form"]), ("tape lake tables NAME…", [])],
)
def test_a_command_that_is_not_there_is_found(line: str, missing: list[str]) -> None:
    assert unknown(line) == missing
