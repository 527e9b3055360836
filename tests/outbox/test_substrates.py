"""The substrate swap: the relay feeds another broker, and the envelope stays what it was."""

import json
from datetime import UTC
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from tape.bridges.opening import lines_of
from tape.cli.main import run
from tape.outbox.relay import line_relay
from tests.bridges.leaving import left
from tests.bridges.sides import NatsSide, RedisSide, Side
from tests.bridges.test_work import configured
from tests.outbox.places import Place, said
from tests.servers.nats import NatsServer
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyServer

ENVELOPE = {
    "event_id", "event_type", "event_version", "occurred_at", "source", "target", "workspace_id", "payload",
    "idempotency_key", "trace_context",
}  # fmt: skip


@pytest.fixture(params=["nats", "redis-stream"])
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        return NatsSide(server)
    valkey: ValkeyServer = request.getfixturevalue("valkey_server")
    return RedisSide(valkey)


async def test_the_envelope_is_the_same_on_the_other_side_and_there_once(place: Place, side: Side) -> None:
    event = said(1, event_version=3, workspace_id=uuid4(), trace_context=f"00-{'a' * 32}-{'b' * 16}-01")
    line = lines_of({side.name: side.settings})[side.name]
    relay = line_relay(line, side.target.partition("://")[2])

    async with side.prepared():
        await relay(event)
        await place.said(event, said(2))
        async with place.listening({"tape.relay": relay}):
            await place.wait_until("delivered", 2)
        received = await side.received()
    await line.close()

    bodies = [json.loads(each.body) for each in received]
    assert [body["payload"] for body in bodies] == [{"n": 1}, {"n": 2}]
    assert set(bodies[0]) == ENVELOPE
    assert (bodies[0]["event_id"], bodies[0]["event_version"]) == (str(event.event_id), 3)
    assert bodies[0]["occurred_at"] == event.occurred_at.astimezone(UTC).isoformat()
    assert (received[0].key, bodies[0]["trace_context"]) == (event.idempotency_key, event.trace_context)


async def test_an_event_that_the_substrate_refuses_is_a_dead_letter_with_its_reason(place: Place, side: Side) -> None:
    line = lines_of({side.name: side.settings})[side.name]

    async with side.prepared():
        relay = line_relay(line, side.poison_target.partition("://")[2])
        await place.said(said(1, payload={"n": 1, "text": side.poison}))
        async with place.listening({"tape.relay": relay}):
            await place.wait_until("failed", 1)
    await line.close()

    ((error, attempts),) = await place.states("last_error, attempts")
    assert side.reason in error and attempts == 1


def test_the_command_relays_to_where_the_settings_say(
    tmp_path: Path, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    side, place = RedisSide(valkey_server), Place("sqlite", f"sqlite:///{tmp_path / 'business.db'}")
    monkeypatch.setenv("TAPE_CONFIG", configured(tmp_path, side.name, side.settings))
    assert run(["outbox", "migrate", "--store", place.url]) == 0
    anyio.run(place.run, "CREATE TABLE orders (n INTEGER, note TEXT)")
    anyio.run(place.said, said(1), said(2))
    capsys.readouterr()

    assert run(["outbox", "relay", "--to", side.target, "--once", "--json", "--store", place.url]) == 0
    assert json.loads(capsys.readouterr().out) == {"relayed": 2}
    assert len(anyio.run(side.received)) == 2


@pytest.mark.parametrize("options", [[], ["--once"]])
async def test_a_relay_that_is_told_to_leave_while_its_peer_is_away_has_used_up_no_attempt(
    tmp_path: Path, place: Place, options: list[str]
) -> None:
    await place.said(said(1), said(2))
    config = configured(tmp_path, "redis-stream", {"url": f"redis://127.0.0.1:{free_port()}/0"})
    command = ["outbox", "relay", "--to", "redis-stream://orders", "--store", place.url, *options]

    told = await anyio.to_thread.run_sync(left, tmp_path, config, command)

    found = await place.rows(f"SELECT DISTINCT status, attempts, last_error FROM {place.outbox}_deliveries")
    assert (told, found) == ({"relayed": 0}, [("pending", 0, None)])


def test_relaying_to_where_no_connection_leads_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAPE_CONFIG", raising=False)
    url = f"sqlite:///{tmp_path / 'business.db'}"
    assert run(["outbox", "migrate", "--store", url]) == 0

    assert run(["outbox", "relay", "--to", "nats://orders", "--once", "--store", url]) == 2
    assert "[connections.nats]" in capsys.readouterr().err
