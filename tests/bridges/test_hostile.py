"""What strangers say goes through every bridge or is refused; it holds up nothing, and no refusal tells a secret."""

from urllib.parse import unquote

import anyio
import pytest

from tape.bridges.connections import connections_of
from tape.bridges.message import Message
from tape.bridges.target import Target
from tape.core.errors import UsageError
from tape.core.outbox import OutboxEvent
from tape.outbox.relay import line_relay
from tests.bridges.bridging import line
from tests.bridges.sides import SECRET, NatsSide, Side, WebhookSide
from tests.patience import PATIENCE_S
from tests.servers.listening import WebhookServer
from tests.servers.nats import NatsServer

KEYS = ["größe-☃", "50%", "a key", " key", "key "]
HOOK = "https://example.com/hook"


def message(key: str, facts: dict[str, str]) -> Message:
    return Message(key=key, order="r1", body=b'{"payload":1}', facts=facts)


async def test_a_key_of_any_visible_characters_reaches_the_peer_and_is_told_from_others(side: Side) -> None:
    events = [OutboxEvent(event_type="größe", source="s", payload={}, idempotency_key=key) for key in KEYS]
    over = line(side)

    with anyio.fail_after(PATIENCE_S):
        for event in events:
            await line_relay(over, Target.parse(side.target).topic)(event)
        received = await side.received()

    await over.close()
    is_text = not isinstance(side, NatsSide | WebhookSide)
    assert sorted(each.key if is_text else unquote(each.key) for each in received) == sorted(KEYS)


@pytest.mark.parametrize("kind", [NatsSide, WebhookSide])
async def test_a_line_break_in_a_header_begins_no_other_header(
    kind: type[NatsSide | WebhookSide], nats_server: NatsServer, webhook_receiver: WebhookServer
) -> None:
    side = NatsSide(nats_server) if kind is NatsSide else WebhookSide(webhook_receiver)
    over, facts = line(side), {"tape-run-id": "r1", "tape-type": "a\r\nx-forged: 1"}

    with anyio.fail_after(PATIENCE_S):
        async with side.prepared():
            await over.send(Target.parse(side.target).topic, message("k", facts))
            (received,) = await side.received()

    await over.close()
    assert "x-forged" not in received.headers
    assert unquote(received.headers["tape-type"]) == "a\r\nx-forged: 1"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", [], [SECRET, ""]], ids=str)
def test_a_webhook_that_anybody_could_sign_is_refused(secret: object) -> None:
    with pytest.raises(UsageError, match="24 bytes"):
        connections_of({"hook": {"url": HOOK, "secret": secret}})


@pytest.mark.parametrize("bounds", [{"remember_s": 0}, {"remember_s": -1}, {"max_len": -1}], ids=str)
def test_a_stream_that_would_remember_nothing_is_refused(bounds: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"connections\.redis-stream"):
        connections_of({"redis-stream": bounds})


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
        connections_of({name: table})

    assert "1234567" not in str(refused.value)
