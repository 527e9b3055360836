"""`tape.connect("tape://…")`: the same nouns over a wire, with deadlines, and back after a server was gone."""

import sqlite3
from contextlib import aclosing, closing
from pathlib import Path

import anyio
import grpc
import pytest

import tape
from tape.core.errors import Corrupt, InvalidCursor, RunNotFound, Unavailable, UsageError, VersionConflict
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.server import TapeServer, begin_epoch


def test_a_program_without_async_works_on_a_server(lasting_server: TapeServer) -> None:
    with tape.connect(lasting_server.rpc) as client:
        begun = client.runs.begin("treasury", invocation="blocking", owner="w1")
        effect = client.effects.begin(begun.run.run_id, "wire", {"usd": 7})
        client.effects.complete(begun.run.run_id, effect.idempotency_key, response={"ok": True})
        ended = client.runs.end(begun.run.run_id)

    assert (begun.is_resumed, ended.status) == (False, tape.RunStatus.TERMINAL)


async def test_without_a_url_the_server_of_the_environment_is_reached(
    lasting_server: TapeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_URL", lasting_server.rpc)

    async with tape.aconnect() as client:
        written = await client.values.set("n", "by-environment", 1)
    async with tape.aconnect(lasting_server.rpc) as client:
        assert await client.values.newest("n", "by-environment") == written


@pytest.mark.parametrize("url", ["tape://", "tape://host/path", "tape:///x"])
async def test_what_names_no_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="tape://localhost:7878"):
        async with tape.aconnect(url):
            pytest.fail("it connected")


async def test_an_unreachable_server_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tape.sdk.remote.channel.CONNECT_S", 0.2)

    with pytest.raises(Unavailable, match="nobody answers"):
        async with tape.aconnect("tape://127.0.0.1:1"):
            pytest.fail("it connected")


async def test_a_cancelled_attempt_to_connect_closes_its_channel() -> None:
    channel = Channel("tape://127.0.0.1:1")

    with anyio.move_on_after(0):
        await channel.__aenter__()

    with pytest.raises(grpc.aio.UsageError, match="closed"):
        await channel.call("Append", pb.AppendRequest(), pb.AppendResponse)


async def test_an_error_is_the_same_as_in_process(lasting_server: TapeServer) -> None:
    async with tape.aconnect(lasting_server.rpc) as client:
        await client.values.set("n", "conflict", 1)
        with pytest.raises(VersionConflict) as conflict:
            await client.values.set("n", "conflict", 2, if_version=0)
        with pytest.raises(tape.NotFound):
            await client.runs.get("nobody")

    assert (conflict.value.ledger, conflict.value.seen, conflict.value.actual) == ("value", 0, 1)
    assert not isinstance(conflict.value, RunNotFound)


async def test_the_deadline_of_a_scope_is_the_deadline_of_a_call(start: Start) -> None:
    server = start("memory://")
    async with tape.aconnect(server.rpc) as client:
        server.kill()
        with anyio.move_on_after(0.3) as scope:
            await client.values.newest("n", "k")

    assert scope.cancelled_caught


async def test_a_call_cut_short_by_a_scope_just_ends(lasting_server: TapeServer) -> None:
    async with tape.aconnect(lasting_server.rpc) as client:
        for microseconds in range(0, 4_000, 10):
            with anyio.move_on_after(microseconds / 1_000_000):
                await client.values.newest("n", "k")

        assert (await client.values.newest("n", "k")).version == 0


async def test_a_client_finds_its_server_again(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    server = start(store)
    port = server.rpc.rpartition(":")[2]
    async with tape.aconnect(server.rpc) as client:
        await client.values.set("n", "k", 1)
        watch = await client.values.watch("n", "k")
        async with aclosing(watch):
            with anyio.fail_after(DEADLINE_S):
                first = await watch.__anext__()
                server.kill()
                start(store, "--grpc", f"127.0.0.1:{port}")
                written = await client.values.set("n", "k", 2)
                second = await watch.__anext__()

    assert (first.value.version, second.value.version, written.version) == (1, 2, 2)


async def test_a_stream_resumes_after_a_server_restart(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    server = start(store)
    port = server.rpc.rpartition(":")[2]
    numbers: list[object] = []
    async with tape.aconnect(server.rpc) as client:
        await client.events.append([tape.Event(run_id="r", payload=n) for n in range(3)], open=True)
        async with aclosing(await client.events.stream(run_id="r")) as entries:
            with anyio.fail_after(DEADLINE_S):
                for restarts in range(2):
                    numbers += [(await anext(entries)).payload for _ in range(3)]
                    server.kill()
                    server = start(store, "--grpc", f"127.0.0.1:{port}")
                    more = range(3 * restarts + 3, 3 * restarts + 6)
                    await client.events.append([tape.Event(run_id="r", payload=n) for n in more])
                numbers += [(await anext(entries)).payload for _ in range(3)]

    assert numbers == [*range(9)]


async def test_a_history_of_two_epochs_is_read_as_one(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/tape.db")
    async with tape.aconnect(server.rpc) as client:
        await client.events.append([tape.Event(run_id="r", payload=n) for n in range(3)], open=True)
        begin_epoch(server)
        await client.events.append([tape.Event(run_id="r", payload=n) for n in range(3, 6)])

        with anyio.fail_after(DEADLINE_S):
            async with aclosing(await client.events.stream(run_id="r", follow=False)) as entries:
                found = [(entry.payload, entry.epoch) async for entry in entries]

    assert [payload for payload, _ in found] == [*range(6)]
    assert len({epoch for _, epoch in found}) == 2


async def test_a_stream_that_resumes_in_another_epoch_raises(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    server = start(store)
    async with tape.aconnect(server.rpc) as client:
        await client.events.append(tape.Event(run_id="r", payload=0), open=True)
        async with aclosing(await client.events.stream(run_id="r")) as entries:
            await anext(entries)
            server.kill()
            begin_epoch(server)
            start(store, "--grpc", server.rpc.removeprefix("tape://"))

            with anyio.fail_after(DEADLINE_S), pytest.raises(InvalidCursor, match="start over"):
                await anext(entries)


async def test_a_missing_entry_is_the_same_error_as_in_process(start: Start, tmp_path: Path) -> None:
    server = start(f"sqlite:///{tmp_path}/lossy.db")
    async with tape.aconnect(server.rpc) as client:
        await client.events.append([tape.Event(run_id="r", payload=n) for n in range(3)], open=True)
        server.stop()
        with closing(sqlite3.connect(tmp_path / "lossy.db")) as connection, connection:
            connection.execute("DELETE FROM tape_journal WHERE global_seq = 2")
    again = start(f"sqlite:///{tmp_path}/lossy.db")

    async with tape.aconnect(again.rpc) as client:
        with pytest.raises(Corrupt) as lost:
            async with aclosing(await client.events.stream(subject="/**", from_global_seq=0, follow=False)) as stream:
                [entry async for entry in stream]

    assert lost.value.global_seq == 2
