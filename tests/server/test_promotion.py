"""A Postgres standby is promoted under a running server: no reader mixes entries of two terms."""

import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import httpx
import pytest

import tape
from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.errors import InvalidCursor, Unavailable
from tape.core.event import Entry
from tape.core.ports import Store
from tape.matcher.matcher import Matcher
from tape.store.postgres.checkup import check_up
from tape.wire.frames import Frame, Goaway, ReplayComplete, StateResyncRequired
from tests.contract.events import make_event, positions
from tests.contract.ledgers import until
from tests.contract.reactions import reaction, sources
from tests.deadlines import DEADLINE_S
from tests.server.reading import ids, open_stream, publish
from tests.server.server import TapeServer, clean_environment
from tests.server.test_epochs import after_resync, after_resync_ids, epoch_of
from tests.servers import forked
from tests.servers.databases import execute, name
from tests.servers.fixtures import running
from tests.servers.postgres import USER, PostgresServer
from tests.servers.standby import NAME, PostgresStandby

RECEIVED = 18
LOST = 82
OTHERS = 90


class Pair(NamedTuple):
    """A primary and its standby, as one URL that leads to whichever of them can be written to."""

    primary: PostgresServer
    standby: PostgresStandby
    url: str

    def fail_over(self) -> None:
        self.primary.kill_hard()
        self.standby.promote()


@contextmanager
def paired() -> Iterator[Pair]:
    with running(PostgresServer) as primary:
        database = name(primary.create_database())
        with PostgresStandby(primary) as standby:
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            yield Pair(primary, standby, f"postgresql://{USER}@{hosts}/{database}?target_session_attrs=primary")
            primary.restart()  # only PostgreSQL frees the shared memory it had


@pytest.fixture
def pair() -> Iterator[Pair]:
    with paired() as pair:
        yield pair


@pytest.fixture
def server(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    with TapeServer(tmp_path_factory.mktemp("serve"), pair.url) as server:
        yield server


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


class Lost(NamedTuple):
    """A server after a failover, its only run, and the headers of a reader with all earlier entries."""

    server: TapeServer
    url: str
    run_id: str
    held: dict[str, str]


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lost]:
    """The standby had received 18 of 100 entries; 90 others have been written since."""
    with paired() as pair, TapeServer(tmp_path_factory.mktemp("serve"), pair.url) as server, server.client() as http:
        publish(http, "r", *range(RECEIVED))
        pair.standby.stop_receiving()
        publish(http, "r", *range(LOST))
        held = {"last-event-id": str(RECEIVED + LOST), "x-tape-epoch": str(epoch_of(http))}
        pair.fail_over()
        say_again(http, "r", *(["other"] * OTHERS))
        yield Lost(server, pair.url, "r", held)


def say_again(http: httpx.Client, run_id: str, *payloads: object) -> list[int]:
    """Appends as soon as the server has found the promoted database."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        answer = http.post(f"/runs/{run_id}/events", json=[{"payload": payload} for payload in payloads])
        if answer.status_code != 503:
            answer.raise_for_status()
            return [entry["seq"] for entry in answer.json()["entries"]]
    pytest.fail("the server never found the promoted database")


def read(lost: Lost, place: int, query: dict[str, str]) -> list[Frame]:
    """What a reader is sent that comes back with a place from before, until it has caught up."""
    with lost.server.client() as http:
        with open_stream(http, "/events", {**lost.held, "last-event-id": str(place)}, **query) as listener:
            listener.first(ReplayComplete)
        return listener.frames


@pytest.mark.parametrize("query", [{"run_id": "r"}, {}, {"subject": "/tape/event/**"}])
@pytest.mark.parametrize("place", [RECEIVED + 1, RECEIVED + LOST, RECEIVED + OTHERS])
def test_a_reader_of_entries_that_a_promotion_lost_gets_a_resync(lost: Lost, place: int, query: dict[str, str]) -> None:
    frames = read(lost, place, query)

    assert [frame.reason for frame in frames if isinstance(frame, StateResyncRequired)] == ["epoch_reset"]


@pytest.mark.parametrize("query", [{"run_id": "r"}, {}, {"subject": "/tape/event/**"}])
@pytest.mark.parametrize("place", [RECEIVED - 1, RECEIVED])
def test_a_reader_of_no_lost_entries_resumes(lost: Lost, place: int, query: dict[str, str]) -> None:
    frames = read(lost, place, query)

    assert ids(frames) == [*range(place + 1, RECEIVED + OTHERS + 1)] and not after_resync(frames)


async def test_an_in_process_stream_checks_the_epoch_of_its_cursor(lost: Lost) -> None:
    epoch = int(lost.held["x-tape-epoch"])
    async with open_store(lost.url) as store, run_journal(store) as journal:
        kept = [entry async for entry in journal.stream(from_global_seq=RECEIVED, epoch=epoch, follow=False)]
        with pytest.raises(InvalidCursor):
            await anext(journal.stream(from_global_seq=RECEIVED + 1, epoch=epoch))

    assert len(kept) == OTHERS and {entry.epoch for entry in kept} == {journal.epoch} != {epoch}


def test_the_audit_lists_the_term_and_finds_no_fault(lost: Lost, tmp_path: Path) -> None:
    command = ["--store", lost.url, "journal", "verify"]
    done = forked.run("tape.cli.main", command, folder=tmp_path, environment=clean_environment())

    assert (done.returncode, done.stderr) == (0, "")
    assert f"began at {RECEIVED + 1}" in done.stdout


async def test_open_streams_get_a_resync_or_a_goaway_after_a_promotion(
    pair: Pair, server: TapeServer, http: httpx.Client
) -> None:
    for run_id in ("kept", "cut"):
        publish(http, run_id, 1)
    async with tape.aconnect(server.rpc) as client, aclosing(await client.events.stream(run_id="kept")) as remote:
        assert (await anext(remote)).payload == 1
        with open_stream(http, "/events", run_id="kept") as kept, open_stream(http, "/events", run_id="cut") as cut:
            for listener in (kept, cut):
                listener.first(ReplayComplete)
            pair.standby.stop_receiving()
            publish(http, "cut", 2, 3)
            assert cut.ids(3) == [1, 2, 3]
            pair.fail_over()
            say_again(http, "cut", "b", "c", "d")
            say_again(http, "kept", 2)

            assert after_resync_ids(cut, 4) == [1, 2, 3, 4]
            kept.first(Goaway)
        with anyio.fail_after(DEADLINE_S):
            assert (await anext(remote)).payload == 2
    held = {"last-event-id": "1", "x-tape-epoch": kept.headers["x-tape-epoch"]}

    with open_stream(http, "/events", held, run_id="kept") as again:
        again.first(ReplayComplete)
    assert ids(again.frames) == [2] and not after_resync(again.frames)


async def test_a_synchronous_standby_loses_nothing_and_every_reader_resumes(
    pair: Pair, http: httpx.Client, run_id: str
) -> None:
    primary = pair.primary.url("postgres")
    before = await check_up(primary)
    execute(primary, f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
    execute(primary, "SELECT pg_reload_conf()")
    publish(http, run_id, *range(100))
    held = {"last-event-id": "100", "x-tape-epoch": str(epoch_of(http))}
    after = await check_up(primary)

    pair.fail_over()
    say_again(http, run_id, "next")

    with open_stream(http, "/events", held, run_id=run_id) as listener:
        listener.first(ReplayComplete)
    assert ids(listener.frames) == [101] and not after_resync(listener.frames)
    assert int(listener.headers["x-tape-epoch"]) > int(held["x-tape-epoch"])
    assert (before.standbys, after.standbys) == ((0, 1, 0), (1, 0, 0))


async def test_p10_a_matcher_that_survives_a_promotion_matches_what_the_standby_had_registered(pair: Pair) -> None:
    async with open_store(pair.url) as store, run_journal(store) as journal:
        matcher = Matcher(store, journal.pages())
        async with background(matcher.run):
            await store.reactions.register(reaction("kept"))
            await until_matched(store, matcher)
            pair.standby.stop_receiving()
            await store.reactions.pause("kept", "maintenance")
            await store.reactions.register(reaction("lost"))
            await append_again(journal, 1)
            await until_matched(store, matcher)

            pair.fail_over()
            entries = await append_again(journal, 5)  # beyond the cursor that the matcher had
            await until(lambda: store.reactions.match_cursor(0), lambda found: found.cursor == entries[-1].global_seq)

        assert (await sources(store, "kept"), await sources(store, "lost")) == (positions(entries), [])
        assert list(matcher.states) == ["kept"]


async def until_matched(store: Store, matcher: Matcher) -> None:
    """Returns when the matcher has matched the whole journal and waits for more."""
    head = (await store.journal.bounds()).head
    await until(lambda: store.reactions.match_cursor(0), lambda found: found == (found.version, head, matcher.states))


async def append_again(journal: Journal, count: int) -> list[Entry]:
    """Appends as soon as the journal has found the database that can be written to."""
    with anyio.fail_after(DEADLINE_S):
        while True:
            with suppress(Unavailable):
                return await journal.append([make_event(subject="/a/b") for _ in range(count)], open=True)
