"""Hostile keys, headers and settings: delivered unchanged or refused, and no error text shows a secret."""

from urllib.parse import unquote

import anyio
import pytest

from tape.bridges.config import read_configs
from tape.bridges.message import Message
from tape.bridges.target import Target
from tape.core.errors import UsageError
from tape.core.outbox import OutboxEvent
from tape.outbox.relay import peer_relay
from tests.bridges.bridge_worker import connect_to
from tests.bridges.receivers import SECRET, NatsReceiver, Receiver, WebhookReceiver
from tests.deadlines import DEADLINE_S
from tests.servers.listening import WebhookServer
from tests.servers.nats import NatsServer

KEYS = ["größe-☃", "50%", "a key", " key", "key "]
HOOK = "https://example.com/hook"


def message(key: str, headers: dict[str, str]) -> Message:
    return Message(key=key, order="r1", body=b'{"payload":1}', extra_headers=headers)


async def test_a_key_of_any_visible_characters_reaches_the_peer_unchanged(receiver: Receiver) -> None:
    events = [OutboxEvent(event_type="größe", source="s", payload={}, idempotency_key=key) for key in KEYS]
    peer = connect_to(receiver)

    with anyio.fail_after(DEADLINE_S):
        for event in events:
            await peer_relay(peer, Target.parse(receiver.target).topic)(event)
        received = await receiver.received()

    await peer.close()
    is_text = not isinstance(receiver, NatsReceiver | WebhookReceiver)
    assert sorted(each.key if is_text else unquote(each.key) for each in received) == sorted(KEYS)


@pytest.mark.parametrize("kind", [NatsReceiver, WebhookReceiver])
async def test_a_line_break_in_a_header_starts_no_other_header(
    kind: type[NatsReceiver | WebhookReceiver], nats_server: NatsServer, webhook_server: WebhookServer
) -> None:
    receiver = NatsReceiver(nats_server) if kind is NatsReceiver else WebhookReceiver(webhook_server)
    peer, headers = connect_to(receiver), {"tape-run-id": "r1", "tape-type": "a\r\nx-forged: 1"}

    with anyio.fail_after(DEADLINE_S):
        async with receiver.prepared():
            await peer.send(Target.parse(receiver.target).topic, message("k", headers))
            (received,) = await receiver.received()

    await peer.close()
    assert "x-forged" not in received.headers
    assert unquote(received.headers["tape-type"]) == "a\r\nx-forged: 1"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", [], [SECRET, ""]], ids=str)
def test_a_webhook_secret_that_can_be_guessed_is_refused(secret: object) -> None:
    with pytest.raises(UsageError, match="24 bytes"):
        read_configs({"hook": {"url": HOOK, "secret": secret}})


@pytest.mark.parametrize("bounds", [{"remember_s": 0}, {"remember_s": -1}, {"max_len": -1}], ids=str)
def test_a_stream_without_deduplication_is_refused(bounds: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"connections\.redis-stream"):
        read_configs({"redis-stream": bounds})


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("hook", {"url": HOOK, "secret": 1234567}),
        ("hook", {"url": "https://me:1234567@example.com", "secret": SECRET}),
        ("hook", {"url": HOOK, "secret": "whsec_1234567"}),
        ("nats", {"password": 1234567}),
        ("nats", {"token": 1234567}),
    ],
)
def test_a_refusal_never_quotes_a_secret(name: str, table: dict[str, object]) -> None:
    with pytest.raises(UsageError) as refused:
        read_configs({name: table})

    assert "1234567" not in str(refused.value)
