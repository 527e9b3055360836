"""Reads from a SQLite file that the system cannot read any more."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.core.ids import GlobalSeq
from tests.contract.events import append, make_event


async def test_a_read_that_the_disk_fails_has_written_nothing(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'tape.db'}") as store:
        await append(store, *(make_event(n=n) for n in range(500)))
        await store.journal.bounds()  # the reader opens its files with its first question

        with unreadable(tmp_path), pytest.raises(Unavailable, match="disk I/O error") as failed:
            await store.journal.read(GlobalSeq(0))

        assert failed.value.outcome == "nothing"


@contextmanager
def unreadable(folder: Path) -> Iterator[None]:
    """Opens the files of a folder for writing only, for a while."""
    with ExitStack() as stack, Path(os.devnull).open("wb") as nothing:
        for link in list(Path("/proc/self/fd").iterdir()):
            if link.exists() and link.readlink().parent == folder and not link.readlink().name.endswith("-shm"):
                number, kept = int(link.name), os.dup(int(link.name))
                stack.callback(os.close, kept)
                stack.callback(os.dup2, kept, number)
                os.dup2(nothing.fileno(), number)
        yield
