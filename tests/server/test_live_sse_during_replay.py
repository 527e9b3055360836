"""The bug that began it all: a live reader of a fork opened the file that its writer held, and crashed.

The first test is the regression, the second the smoke test that showed it gone, step by step. Both stay for ever.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import duckdb
import httpx
import psutil
import pytest

from tape.lake import stream_cold
from tape.lake.cold.runs import cold_path
from tape.lake.file_lock import is_locked
from tape.wire.frames import Delivered
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.reading import open_stream, publish
from tests.server.server import TapeServer
from tests.server.test_forks import detail, fork, lines, url_of, with_players

TURNS = 60


@contextmanager
def held(path: Path) -> Iterator[None]:
    """A writer of the file, in another process than the server: this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect(str(path))
    try:
        yield
    finally:
        connection.close()


def test_a_run_is_tailed_live_while_its_file_is_being_written(start: Start, tmp_path: Path) -> None:
    with held(cold_path(tmp_path, "child")):
        server = start("memory://")
        with server.client() as http:
            publish(http, "child", *range(5))
            with open_stream(http, "/events", run_id="child") as listener:
                before = listener.ids(5)
                publish(http, "child", *range(5))
                after = listener.ids(10)

    assert (before[:5], after) == ([*range(1, 6)], [*range(1, 11)])
    assert_untroubled(server)


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres", "redis"])
def test_the_smoke_test_of_a_fork_step_by_step(
    request: pytest.FixtureRequest, start: Start, tmp_path: Path, store: str
) -> None:
    options = ("--producers", "players", "--reap-after", "1s")
    server = start(url_of(store, with_players(tmp_path), request), *options)
    with server.client() as http:
        parent = finished_parent(http)
        child = fork(http, parent, 3, producer="steady", n_turns=TURNS, mutation={"wind": 9})
        with ExitStack() as stack:
            readers = [stack.enter_context(open_stream(http, "/events", run_id=child)) for _ in range(5)]
            assert readers[0].ids(1)[0] == 1
            assert_only_the_writer_holds_a_file(server, child, is_forgetful=store in ("memory", "redis"))
            live = [[frame for frame in reader.rest() if isinstance(frame, Delivered)] for reader in readers]
        warm = lines(http, child)
        if store in ("memory", "redis"):
            until(lambda: detail(http, child).get("is_reaped") is True, "the store has let go of it")
            file = [(envelope.run_id, envelope.seq) for envelope in stream_cold(cold_path(tmp_path, child), child)]
            assert file == [(child, seq) for seq in range(1, len(warm) + 1)]
        cold = lines(http, child)

    assert [frame.id for frame in live[0]] == [*range(1, 3 + 2 + TURNS + 1)]
    assert all(frames == live[0] for frames in live)
    assert cold == warm and len(cold) == len(live[0])
    assert_untroubled(server)


def finished_parent(http: httpx.Client) -> str:
    publish(http, "parent", *range(5))
    http.post("/runs/parent/close").raise_for_status()
    return "parent"


def assert_only_the_writer_holds_a_file(server: TapeServer, child: str, *, is_forgetful: bool) -> None:
    """Five readers stream the run; only the writer of the run's file has opened it."""
    path = cold_path(server.folder, child)
    if is_forgetful:
        until(lambda: is_locked(path), "its writer holds the file")
    opened = [file.path for file in psutil.Process(server.pid).open_files() if file.path.endswith(".duckdb")]
    assert len(opened) == len(set(opened))
    assert is_forgetful or not opened


def assert_untroubled(server: TapeServer) -> None:
    assert not any(word in server.log for word in ("Exception", "Traceback", "request.failed"))
