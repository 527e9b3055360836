"""`tape value`: read, write and watch values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, ask_node, run as finish, shared
from tape.cli.noun_group import NounGroup

if TYPE_CHECKING:
    from tape.core.codec import JsonValue
    from tape.core.value import Value, ValueChange

MAX_ROWS: Final = 1_000

Command = TypeVar("Command", bound=Callable[..., object])


@click.group(cls=NounGroup, no_args_is_help=False)
@shared
def value() -> None:
    """Read, write and watch values; every version is an entry of the journal."""


def _named(command: Command) -> Command:
    return click.argument("namespace")(click.argument("key")(command))


def _guarded(command: Command) -> Command:
    """The options of a command that writes."""
    command = click.option("--writer", default="", help="Who writes it.")(command)
    command = click.option("--key", "call_key", metavar="K", help="The same key again writes once.")(command)
    about = "Only over this version; 0: only if there is no value."
    return click.option("--if-version", type=click.IntRange(0), metavar="N", help=about)(command)


@value.command()
@_named
@shared
@click.pass_obj
def get(choices: Choices, namespace: str, key: str) -> None:
    """Print the newest version of a value."""
    found = ask_node(choices, lambda node: node.values.newest(namespace, key))
    if found.deleted:
        raise _missing(found)
    _write(choices, found, is_bare=True)


@value.command("set")
@_named
@click.argument("text", metavar="JSON")
@click.option("--if-exists", is_flag=True, help="Only over a value, of whatever version.")
@_guarded
@shared
@click.pass_obj
def set_value(choices: Choices, /, namespace: str, key: str, text: str, call_key: str | None, **how: Any) -> None:
    """Write JSON as the next version."""
    from tape.core import codec

    new: JsonValue = codec.decode(text)
    written = ask_node(
        choices, lambda node: node.values.set(namespace, key, new, key=call_key, **how), must_exist=False
    )
    _write(choices, written)


@value.command()
@_named
@_guarded
@shared
@click.pass_obj
def delete(
    choices: Choices, namespace: str, key: str, if_version: int | None, call_key: str | None, writer: str
) -> None:
    """Write a tombstone, which is a version too."""
    deleted = ask_node(
        choices,
        lambda node: node.values.delete(namespace, key, if_version=if_version, writer=writer, key=call_key),
    )
    if deleted.version == 0:
        raise _missing(deleted)
    _write(choices, deleted)


@value.command()
@_named
@click.option("--limit", type=click.IntRange(1, MAX_ROWS), default=100, show_default=True, help="How many at most.")
@shared
@click.pass_obj
def history(choices: Choices, namespace: str, key: str, limit: int) -> None:
    """Print the newest versions, the oldest of them first."""
    for change in ask_node(choices, lambda node: node.values.history(namespace, key, limit)):
        _write(choices, change.value, change)


@value.command()
@_named
@click.option("--from-version", type=click.IntRange(0), metavar="N", help="Every version after this one.")
@click.option("--count", type=click.IntRange(1), metavar="N", help="End after so many.")
@shared
@click.pass_obj
def watch(choices: Choices, namespace: str, key: str, from_version: int | None, count: int | None) -> None:
    """Print what is known now, and every version as it comes."""
    finish(partial(_watch, choices, namespace, key, from_version, count))


async def _watch(choices: Choices, namespace: str, key: str, from_version: int | None, count: int | None) -> None:
    async with (
        choices.open_node(must_exist=True) as node,
        aclosing(await node.values.watch(namespace, key, from_version)) as changes,
    ):
        seen = 0
        async for change in changes:
            _write(choices, change.value, change)
            output.flush()
            seen += 1
            if seen == count:
                break


def _write(choices: Choices, value: Value, change: ValueChange | None = None, is_bare: bool = False) -> None:
    """Prints a version: as JSON all of it, else the value, with its version unless only the value was asked for."""
    if choices.is_json:
        output.write_record(value if change is None else change)
    elif is_bare:
        output.write(output.escape(value.value_json))
    else:
        text = "deleted" if value.deleted else value.value_json
        available = output.columns()
        left = None if available is None else available - len(str(value.version)) - 2
        output.write(f"{output.paint(str(value.version), 'bold')}  {output.fit(output.escape(text), left)}")


def _missing(found: Value) -> Exception:
    from tape.core.errors import NotFound

    name = f"{found.namespace}/{found.key}"
    if found.version:
        return NotFound(f"value {name!r} was deleted; its tombstone is version {found.version}")
    return NotFound(f"there never was a value {name!r}")
