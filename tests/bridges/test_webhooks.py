"""Signed webhooks: who may be sent to, how it is signed, and what an answer means."""

import socket
from dataclasses import replace
from ipaddress import ip_address

import anyio
import pytest
from standardwebhooks import Webhook

from tape.bridges.addresses import is_allowed, resolve
from tape.bridges.connections import connections_of
from tape.bridges.line import Away
from tape.bridges.message import Message
from tape.bridges.opening import lines_of
from tape.bridges.webhook import refusal
from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.work.answers import Dead, Retry
from tests.bridges.bridging import bridging, ended, line, react, say
from tests.bridges.sides import SECRET, WebhookSide
from tests.patience import PATIENCE_S
from tests.servers.listening import WebhookServer
from tests.servers.process import free_port

OLDER = "whsec_" + "YW4gb2xkZXIgb25lIHRoYXQgaXMgc3RpbGwgb3V0"
MESSAGE = Message(key="k1", order="r1", body=b"{}", facts={"tape-run-id": "r1"})
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
LEADING_HOME = ["localhost", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]


@pytest.fixture
def side(webhook_receiver: WebhookServer) -> WebhookSide:
    return WebhookSide(webhook_receiver)


async def test_a_receiver_verifies_the_signature_with_its_own_library(side: WebhookSide, store: Store) -> None:
    await react(store, side.target)

    async with bridging(store, line(side, secret=[SECRET, OLDER])):
        await say(store, 1)
        await ended(store, 1)

    (received,) = await side.received()
    for secret in (SECRET, OLDER):
        assert Webhook(secret).verify(received.body, received.headers)["payload"] == {"n": 1}


async def test_the_id_stays_the_same_over_attempts_and_the_body_does_too(side: WebhookSide, store: Store) -> None:
    await react(store, side.target)
    await say(store, 1)

    async with bridging(store, line(side)):
        await ended(store, 1)
        (task,) = await store.tasks.listed()
    once = line(side)
    await once.send("", Message(key=task.task_id, order="r1", body=(await side.received())[0].body.encode()))
    await once.close()

    first, second = side.server.accepted  # type: ignore[attr-defined]
    assert (first["headers"]["webhook-id"], first["body"]) == (second["headers"]["webhook-id"], second["body"])


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_refused_unless_it_is_listed(address: str) -> None:
    parsed = ip_address(address)
    (listed,) = connections_of({"hook": {"url": "https://a.example", "secret": SECRET, "allow": [address]}}).values()

    assert not is_allowed(parsed, ())
    assert is_allowed(parsed, listed.networks)  # type: ignore[attr-defined]


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is_anybodys(address: str) -> None:
    assert is_allowed(ip_address(address), ())


@pytest.mark.parametrize("host", LEADING_HOME)
async def test_a_name_that_leads_to_a_private_address_is_refused_however_it_is_written(
    host: str, side: WebhookSide
) -> None:
    url = f"http://{host}:{side.server.port}/hook"
    once = lines_of({"hook": {"url": url, "secret": SECRET, "allow": ["10.0.0.0/8"], "deadline_s": 5}})["hook"]

    with anyio.fail_after(PATIENCE_S), pytest.raises(Dead, match="is not public"):
        await once.send("", MESSAGE)

    await once.close()
    assert await side.received() == []


async def test_one_private_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [(socket.AF_INET, 1, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.7")]

    async def answers(*_: object, **__: object) -> list[object]:
        return list(places)

    monkeypatch.setattr(anyio, "getaddrinfo", answers)

    with pytest.raises(Dead, match=r"10\.0\.0\.7"):
        await resolve("rebound.example", 443, ())


async def test_a_redirect_is_not_followed(side: WebhookSide) -> None:
    once = line(side, url=f"http://127.0.0.1:{side.server.port}/moved")

    with pytest.raises(Dead, match="redirects are not followed"):
        await once.send("", MESSAGE)

    await once.close()


async def test_an_endpoint_that_never_answers_a_message_uses_up_its_attempts_and_holds_up_nobody(
    side: WebhookSide, store: Store
) -> None:
    await react(store, side.target, max_concurrency=1, retry_max=1)
    await say(store, 1, "mute")
    await say(store, 2)

    async with bridging(store, line(side, deadline_s=0.2)):
        await ended(store, 3)

    (dead,) = await store.tasks.listed(status=TaskStatus.DLQ)
    assert (dead.payload_json, dead.attempts) == ('"mute"', 2)
    assert "no answer" in dead.last_error
    assert sorted(each.payload["n"] for each in await side.received()) == [1, 2]


async def test_an_endpoint_that_cannot_be_reached_uses_up_no_attempt(side: WebhookSide) -> None:
    once = line(side, url=f"http://127.0.0.1:{free_port()}/", deadline_s=0.2)

    with anyio.move_on_after(1.0) as waiting:
        await once.send("", MESSAGE)

    await once.close()
    assert waiting.cancelled_caught


async def test_a_success_is_one_however_long_its_text_goes_on(side: WebhookSide) -> None:
    once = line(side, deadline_s=0.5)

    with anyio.fail_after(PATIENCE_S):
        await once.send("", replace(MESSAGE, body=b'"endless"'))

    await once.close()
    assert len(await side.received()) == 1


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
def test_a_connection_that_could_do_harm_or_is_misspelt_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"connections\.hook"):
        connections_of({"hook": table})


def test_a_secret_that_is_no_secret_is_refused() -> None:
    with pytest.raises(UsageError, match="base64"):
        connections_of({"hook": {"url": "https://example.com", "secret": "whsec_!"}})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Dead),
        (400, Dead),
        (401, Retry),
        (404, Retry),
        (410, Dead),
        (422, Dead),
        (429, Away),
        (500, Retry),
        (503, Away),
        (504, Retry),
    ],
)
def test_an_answer_says_whether_to_wait_to_try_again_or_to_give_up(status: int, kind: type[Exception]) -> None:
    refused = refusal(status, "because", b"7")

    assert isinstance(refused, kind)
    assert str(status) in str(refused) and "because" in str(refused)
    assert not isinstance(refused, Away) or refused.after_s == 7.0


def test_a_connection_never_shows_its_secret() -> None:
    (hook,) = connections_of({"hook": {"url": "https://example.com", "secret": SECRET}}).values()
    (peer,) = connections_of({"nats": {"url": "nats://me:s3cret@host", "password": "s3cret"}}).values()

    assert SECRET not in repr(hook)
    assert "s3cret" not in repr(peer)
