"""Signed webhooks: allowed addresses, signatures, and the meaning of each status."""

import socket
from dataclasses import replace
from ipaddress import ip_address

import anyio
import pytest
from standardwebhooks import Webhook

from tape.bridges.addresses import is_allowed, resolve
from tape.bridges.config import read_configs
from tape.bridges.message import Message
from tape.bridges.peer import PeerUnavailable
from tape.bridges.peers import peer_connections
from tape.bridges.webhook import error_of
from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.work.answers import Dead, Retry
from tests.bridges.bridge_worker import connect_to, publish, register, running_bridge, wait_for_ended
from tests.bridges.receivers import SECRET, WebhookReceiver
from tests.deadlines import DEADLINE_S
from tests.servers.listening import WebhookServer
from tests.servers.process import free_port

OLDER = "whsec_" + "YW4gb2xkZXIgb25lIHRoYXQgaXMgc3RpbGwgb3V0"
MESSAGE = Message(key="k1", order="r1", body=b"{}", extra_headers={"tape-run-id": "r1"})
PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "fc00::1",
    "fd12::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PRIVATE_HOSTS = ["localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]


@pytest.fixture
def receiver(webhook_server: WebhookServer) -> WebhookReceiver:
    return WebhookReceiver(webhook_server)


async def test_a_receiver_verifies_the_signature_with_its_own_library(receiver: WebhookReceiver, store: Store) -> None:
    await register(store, receiver.target)

    async with running_bridge(store, connect_to(receiver, secret=[SECRET, OLDER])):
        await publish(store, 1)
        await wait_for_ended(store, 1)

    (received,) = await receiver.received()
    for secret in (SECRET, OLDER):
        assert Webhook(secret).verify(received.body, received.headers)["payload"] == {"n": 1}


async def test_all_attempts_have_the_same_id_and_body(receiver: WebhookReceiver, store: Store) -> None:
    await register(store, receiver.target)
    await publish(store, 1)

    async with running_bridge(store, connect_to(receiver)):
        await wait_for_ended(store, 1)
        (task,) = await store.tasks.listed()
    peer = connect_to(receiver)
    await peer.send("", Message(key=task.task_id, order="r1", body=(await receiver.received())[0].body.encode()))
    await peer.close()

    first, second = receiver.server.accepted  # type: ignore[attr-defined]
    assert (first["headers"]["webhook-id"], first["body"]) == (second["headers"]["webhook-id"], second["body"])


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused_unless_it_is_listed(address: str) -> None:
    parsed = ip_address(address)
    (listed,) = read_configs({"hook": {"url": "https://a.example", "secret": SECRET, "allow": [address]}}).values()

    assert not is_allowed(parsed, ())
    assert is_allowed(parsed, listed.networks)  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(ip_address(address), ())


@pytest.mark.parametrize("host", PRIVATE_HOSTS)
async def test_a_host_with_a_private_address_is_refused_however_it_is_written(
    host: str, receiver: WebhookReceiver
) -> None:
    url = f"http://{host}:{receiver.server.port}/hook"
    peer = peer_connections({"hook": {"url": url, "secret": SECRET, "allow": ["10.0.0.0/8"], "deadline_s": 5}})["hook"]

    with anyio.fail_after(DEADLINE_S), pytest.raises(Dead, match="is not public"):
        await peer.send("", MESSAGE)

    await peer.close()
    assert await receiver.received() == []


async def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(socket.AF_INET, 1, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.7")]

    async def answers(*_: object, **__: object) -> list[object]:
        return list(addresses)

    monkeypatch.setattr(anyio, "getaddrinfo", answers)

    with pytest.raises(Dead, match=r"10\.0\.0\.7"):
        await resolve("rebound.example", 443, ())


async def test_a_redirect_is_not_followed(receiver: WebhookReceiver) -> None:
    peer = connect_to(receiver, url=f"http://127.0.0.1:{receiver.server.port}/moved")

    with pytest.raises(Dead, match="redirects are not followed"):
        await peer.send("", MESSAGE)

    await peer.close()


async def test_a_message_without_an_answer_uses_its_attempts_and_blocks_no_other(
    receiver: WebhookReceiver, store: Store
) -> None:
    await register(store, receiver.target, max_concurrency=1, retry_max=1)
    await publish(store, 1, "mute")
    await publish(store, 2)

    async with running_bridge(store, connect_to(receiver, deadline_s=1.0)):
        await wait_for_ended(store, 3)

    (dead,) = await store.tasks.listed(status=TaskStatus.DLQ)
    assert (dead.payload_json, dead.attempts) == ('"mute"', 2)
    assert "no answer" in dead.last_error
    assert {each.payload["n"] for each in await receiver.received()} == {1, 2}


async def test_an_unreachable_endpoint_uses_no_attempt(receiver: WebhookReceiver) -> None:
    peer = connect_to(receiver, url=f"http://127.0.0.1:{free_port()}/", deadline_s=0.2)

    with anyio.move_on_after(1.0) as waiting:
        await peer.send("", MESSAGE)

    await peer.close()
    assert waiting.cancelled_caught


async def test_a_success_with_an_endless_body_is_a_success(receiver: WebhookReceiver) -> None:
    peer = connect_to(receiver, deadline_s=0.5)

    with anyio.fail_after(DEADLINE_S):
        await peer.send("", replace(MESSAGE, body=b'"endless"'))

    await peer.close()
    assert len(await receiver.received()) == 1


@pytest.mark.parametrize(
    "table",
    [
        {"url": "http://example.com/hook", "secret": SECRET},
        {"url": "file:///etc/passwd", "secret": SECRET, "allow": ["127.0.0.1/32"]},
        {"url": "https://me:secret@example.com/hook", "secret": SECRET},
        {"url": "https:///hook", "secret": SECRET},
        {"url": "https://example.com/hook"},
        {"url": "https://example.com/hook", "secret": SECRET, "allow": ["everybody"]},
        {"url": "https://example.com/hook", "secret": SECRET, "follow": True},
        {"url": "https://example.com/hook", "secret": SECRET, "format": "xml"},
        {"url": "https://example.com/hook", "secret": SECRET, "slots": "many"},
    ],
    ids=lambda table: " ".join(map(str, table.values())).replace(SECRET, "secret"),
)
def test_an_unsafe_or_misspelt_webhook_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"connections\.hook"):
        read_configs({"hook": table})


def test_a_secret_that_is_not_base64_is_refused() -> None:
    with pytest.raises(UsageError, match="base64"):
        read_configs({"hook": {"url": "https://example.com", "secret": "whsec_!"}})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Dead),
        (400, Dead),
        (401, Retry),
        (404, Retry),
        (410, Dead),
        (422, Dead),
        (429, PeerUnavailable),
        (500, Retry),
        (503, PeerUnavailable),
        (504, Retry),
    ],
)
def test_a_status_means_wait_retry_or_give_up(status: int, kind: type[Exception]) -> None:
    refused = error_of(status, "because", b"7")

    assert isinstance(refused, kind)
    assert str(status) in str(refused) and "because" in str(refused)
    assert not isinstance(refused, PeerUnavailable) or refused.retry_after_s == 7.0


def test_a_connection_never_shows_its_secret() -> None:
    (hook,) = read_configs({"hook": {"url": "https://example.com", "secret": SECRET}}).values()
    (peer,) = read_configs({"nats": {"url": "nats://me:s3cret@host", "password": "s3cret"}}).values()

    assert SECRET not in repr(hook)
    assert "s3cret" not in repr(peer)
