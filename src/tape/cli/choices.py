"""The options that every command accepts, before and after its name."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tape.cli.interrupts import interrupts

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tape.bus.journal import Journal
    from tape.core.ports import Store
    from tape.operations.ledgers import EventLog, OperationCalls
    from tape.sdk.nouns.node import AsyncNode

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True, kw_only=True)
class Choices:
    """The caller's options; click fills them in one after the other."""

    store: str | None = None
    is_json: bool = False
    is_unsafe: bool = False
    lake: str | None = None

    def location(self) -> tuple[str, bool]:
        """The store's URL, and whether less than full durability is allowed."""
        from tape.settings import Settings

        settings = Settings.read(os.environ)
        return self.store or settings.store, self.is_unsafe or settings.unsafe_durability

    def lake_folder(self) -> Path:
        """Where the lake is."""
        from tape.core.folder import local_folder
        from tape.settings import Settings

        return local_folder(self.lake, "--lake") if self.lake else Settings.read(os.environ).lake_folder

    def file(self) -> Path | None:
        """The file of a store that is one; None for other stores."""
        from urllib.parse import urlsplit

        from tape.store.sqlite.location import Location

        url, is_unsafe = self.location()
        return Location.parse(url, is_unsafe).path if urlsplit(url).scheme == "sqlite" else None

    async def check_exists(self) -> None:
        """Raises MissingStore if there is no store."""
        async with self.open_store(must_exist=True):
            return

    def open_journal(self, *, must_exist: bool = False) -> AbstractAsyncContextManager[Journal]:
        from tape import compose

        url, is_unsafe = self.location()
        return compose.open_journal(url, unsafe_durability=is_unsafe, must_exist=must_exist)

    def open_events(self, *, must_exist: bool = False) -> AbstractAsyncContextManager[EventLog]:
        """Appends and streams events, here or at a server."""
        from tape import compose

        url, is_unsafe = self.location()
        return compose.open_events(url, unsafe_durability=is_unsafe, must_exist=must_exist)

    def is_server(self) -> bool:
        from urllib.parse import urlsplit

        return urlsplit(self.location()[0]).scheme == "tape"

    def has_ledgers(self) -> bool:
        from urllib.parse import urlsplit

        return urlsplit(self.location()[0]).scheme not in ("redis", "rediss")

    def open_node(self, *, must_exist: bool = False) -> AbstractAsyncContextManager[AsyncNode]:
        """The ledgers, here or at a server."""
        from tape import compose

        url, is_unsafe = self.location()
        lake = self.lake_folder() if self.lake else None
        return compose.aconnect(url, must_exist=must_exist, unsafe_durability=is_unsafe, lake=lake)

    def open_operations(self, *, must_exist: bool = False) -> AbstractAsyncContextManager[OperationCalls]:
        """What runs operations: on the store, with or without ledgers, or at a server."""
        from tape import compose

        url, is_unsafe = self.location()
        return compose.open_operations(url, unsafe_durability=is_unsafe, must_exist=must_exist)

    def open_store(self, *, must_exist: bool = False) -> AbstractAsyncContextManager[Store]:
        """The store; a command that creates nothing in it says that it `must_exist`."""
        from tape import compose

        url, is_unsafe = self.location()
        return compose.open_store(url, unsafe_durability=is_unsafe, must_exist=must_exist)


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Runs a command until it ends or is interrupted."""
    return interrupts.run(main)


def ask_node(choices: Choices, ask: Callable[[AsyncNode], Awaitable[T]], *, must_exist: bool = True) -> T:
    """What the node answers; a command that may create its store says that none `must_exist`."""

    async def asked() -> T:
        async with choices.open_node(must_exist=must_exist) as node:
            return await ask(node)
        raise AssertionError("unreachable")

    return run(asked)


def run_in_thread(work: Callable[[], T]) -> T:
    """The same for a blocking call, in a thread: a call into C delays the handling of signals."""
    from anyio import to_thread

    return interrupts.run(lambda: to_thread.run_sync(work, abandon_on_cancel=True))


def shared(command: Command) -> Command:
    """Adds the options that all commands have."""
    for option in (_UNSAFE, _JSON, _STORE):
        command = option(command)
    return command


def in_lake(command: Command) -> Command:
    """Adds the option for the lake's folder."""
    return _LAKE(command)


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:  # an option before the command's name counts unless it is repeated after it
        setattr(context.ensure_object(Choices), str(parameter.name), value)


_STORE = click.option(
    "--store",
    metavar="URL",
    expose_value=False,
    callback=_keep,
    help="Where the journal lives: sqlite:///file.db, postgresql://…, redis://… or memory://.  [default: TAPE_STORE]",
)
_JSON = click.option(
    "--json", "is_json", is_flag=True, expose_value=False, callback=_keep, help="Answer in JSON, a line each."
)
_UNSAFE = click.option(
    "--unsafe-durability",
    "is_unsafe",
    is_flag=True,
    expose_value=False,
    callback=_keep,
    help="Accept a store that may lose acknowledged events.",
)
_LAKE = click.option(
    "--lake",
    metavar="DIR",
    expose_value=False,
    callback=_keep,
    help="Where the lake is.  [default: TAPE_LAKE, <data>/lake]",
)
