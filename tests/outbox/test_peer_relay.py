"""The outbox relayed to another broker: the envelope does not change."""

import json
from datetime import UTC
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from tape.bridges.peers import peer_connections
from tape.cli.main import run
from tape.outbox.relay import peer_relay
from tests.bridges.receivers import NatsReceiver, Receiver, RedisReceiver
from tests.bridges.stopping import stop_while_unavailable
from tests.bridges.test_bridge_commands import configured
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.servers.nats import NatsServer
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyServer

ENVELOPE = {
    "event_id", "event_type", "event_version", "occurred_at", "source", "target", "workspace_id", "payload",
    "idempotency_key", "trace_context",
}  # fmt: skip


@pytest.fixture(params=["nats", "redis-stream"])
def receiver(request: pytest.FixtureRequest) -> Receiver:
    if request.param == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        return NatsReceiver(server)
    valkey: ValkeyServer = request.getfixturevalue("valkey_server")
    return RedisReceiver(valkey)


async def test_the_envelope_arrives_unchanged_and_once(business: BusinessDatabase, receiver: Receiver) -> None:
    event = make_event(1, event_version=3, workspace_id=uuid4(), trace_context=f"00-{'a' * 32}-{'b' * 16}-01")
    peer = peer_connections({receiver.name: receiver.settings})[receiver.name]
    relay = peer_relay(peer, receiver.target.partition("://")[2])

    async with receiver.prepared():
        await relay(event)
        await business.publish(event, make_event(2))
        async with business.listening({"tape.relay": relay}):
            await business.wait_until("delivered", 2)
        received = await receiver.received()
    await peer.close()

    bodies = [json.loads(each.body) for each in received]
    assert [body["payload"] for body in bodies] == [{"n": 1}, {"n": 2}]
    assert set(bodies[0]) == ENVELOPE
    assert (bodies[0]["event_id"], bodies[0]["event_version"]) == (str(event.event_id), 3)
    assert bodies[0]["occurred_at"] == event.occurred_at.astimezone(UTC).isoformat()
    assert (received[0].key, bodies[0]["trace_context"]) == (event.idempotency_key, event.trace_context)


async def test_an_event_that_the_peer_rejects_is_a_dead_letter_with_its_reason(
    business: BusinessDatabase, receiver: Receiver
) -> None:
    peer = peer_connections({receiver.name: receiver.settings})[receiver.name]

    async with receiver.prepared():
        relay = peer_relay(peer, receiver.rejecting_target.partition("://")[2])
        await business.publish(make_event(1, payload={"n": 1, "text": receiver.rejected_payload}))
        async with business.listening({"tape.relay": relay}):
            await business.wait_until("failed", 1)
    await peer.close()

    ((error, attempts),) = await business.states("last_error, attempts")
    assert receiver.rejection in error and attempts == 1


def test_the_command_relays_to_the_configured_peer(
    tmp_path: Path, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver, business = (
        RedisReceiver(valkey_server),
        BusinessDatabase("sqlite", f"sqlite:///{tmp_path / 'business.db'}"),
    )
    monkeypatch.setenv("TAPE_CONFIG", configured(tmp_path, receiver.name, receiver.settings))
    assert run(["outbox", "migrate", "--store", business.url]) == 0
    anyio.run(business.run, "CREATE TABLE orders (n INTEGER, note TEXT)")
    anyio.run(business.publish, make_event(1), make_event(2))
    capsys.readouterr()

    assert run(["outbox", "relay", "--to", receiver.target, "--once", "--json", "--store", business.url]) == 0
    assert json.loads(capsys.readouterr().out) == {"relayed": 2}
    assert len(anyio.run(receiver.received)) == 2


@pytest.mark.parametrize("options", [[], ["--once"]])
async def test_a_relay_stopped_while_its_peer_is_unavailable_counts_no_attempt(
    tmp_path: Path, business: BusinessDatabase, options: list[str]
) -> None:
    await business.publish(make_event(1), make_event(2))
    config = configured(tmp_path, "redis-stream", {"url": f"redis://127.0.0.1:{free_port()}/0"})
    command = ["outbox", "relay", "--to", "redis-stream://orders", "--store", business.url, *options]

    output = await anyio.to_thread.run_sync(stop_while_unavailable, tmp_path, config, command)

    found = await business.rows(f"SELECT DISTINCT status, attempts, last_error FROM {business.outbox}_deliveries")
    assert (output, found) == ({"relayed": 0}, [("pending", 0, None)])


def test_relaying_to_an_unconfigured_target_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAPE_CONFIG", raising=False)
    url = f"sqlite:///{tmp_path / 'business.db'}"
    assert run(["outbox", "migrate", "--store", url]) == 0

    assert run(["outbox", "relay", "--to", "nats://orders", "--once", "--store", url]) == 2
    assert "[connections.nats]" in capsys.readouterr().err
