"""Forwarding the journal: in order, at least once, from the position in the cursor file."""

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tape.bridges.config import PeerConfig
from tape.bridges.message import Message
from tape.bridges.peer import NoAnswer, Peer, PeerConnection
from tape.compose import open_journal, open_store
from tape.core.errors import InvalidCursor, UsageError
from tape.core.event import Entry, Event
from tape.outbox.forwarder import to_peer
from tape.reactions import run_outbox_relay
from tests.bridges.receivers import RedisReceiver
from tests.bridges.test_bridge_commands import configured
from tests.servers.valkey import ValkeyServer


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tape.db'}"


@pytest.fixture
def cursor(tmp_path: Path) -> Path:
    return tmp_path / "cursor.json"


def publish(url: str, *numbers: int) -> list[Entry]:
    async def append() -> list[Entry]:
        async with open_journal(url) as journal:
            return [(await journal.append(Event(run_id="r1", payload=n), open=True))[0] for n in numbers]

    return anyio.run(append)


def relay(url: str, cursor: Path) -> list[object]:
    seen: list[object] = []
    run_outbox_relay(url, to=lambda entry: seen.append(entry.payload), cursor_path=cursor, once=True)
    return seen


def test_23_what_was_relayed_is_not_relayed_again_and_what_is_new_once(url: str, cursor: Path) -> None:
    publish(url, 1, 2, 3)

    assert relay(url, cursor) == [1, 2, 3]
    assert relay(url, cursor) == []
    (entry,) = publish(url, 4)
    assert relay(url, cursor) == [4]
    assert json.loads(cursor.read_text()) == {"last_global_seq": 4, "epoch": entry.epoch}


def test_a_cursor_of_a_journal_that_was_lost_is_refused(url: str, cursor: Path) -> None:
    publish(url, 1, 2, 3)
    relay(url, cursor)
    anyio.run(begin_epoch, url)

    with pytest.raises(InvalidCursor):
        relay(url, cursor)


async def begin_epoch(url: str) -> None:
    async with open_store(url) as store:
        await store.new_epoch()


def test_a_payload_that_is_not_json_is_relayed_byte_for_byte(
    url: str, cursor: Path, tmp_path: Path, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = RedisReceiver(valkey_server)
    monkeypatch.setenv("TAPE_CONFIG", configured(tmp_path, receiver.name, receiver.settings))
    blob = bytes(range(256))

    async def append() -> None:
        async with open_journal(url) as journal:
            await journal.append(Event(run_id="r1", payload=blob, content_type="image/png"), open=True)

    anyio.run(append)
    run_outbox_relay(url, to=receiver.target, cursor_path=cursor, once=True)

    (received,) = anyio.run(receiver.received)
    body = json.loads(received.body)
    assert (b64decode(body["payload_base64"]), body["content_type"]) == (blob, "image/png")


def test_a_function_that_fails_is_called_with_the_same_entry_again(url: str, cursor: Path) -> None:
    publish(url, 1, 2, 3)
    seen: list[object] = []

    def fail_at(number: int) -> Callable[[Entry], None]:
        def function(entry: Entry) -> None:
            seen.append(entry.payload)
            if entry.payload == number:
                raise RuntimeError("no")

        return function

    with pytest.raises(RuntimeError):
        run_outbox_relay(url, to=fail_at(2), cursor_path=cursor, once=True)
    run_outbox_relay(url, to=fail_at(0), cursor_path=cursor, once=True)

    assert seen == [1, 2, 2, 3]


def test_a_timestamp_cursor_is_converted_and_skips_nothing(url: str, cursor: Path) -> None:
    first, second, third = (publish(url, number)[0] for number in (1, 2, 3))
    cursor.write_text(json.dumps({"from_ts_ms": second.ts_ms, "last_run_id": "r1", "last_seq": 1}))

    relayed = relay(url, cursor)

    assert relayed == [entry.payload for entry in (first, second, third) if entry.ts_ms >= second.ts_ms]
    assert json.loads(cursor.read_text())["last_global_seq"] == 3


@pytest.mark.parametrize("text", ["", "[1]", '{"last_global_seq": "1"}', '{"last_global_seq": -1}'])
def test_a_file_that_is_no_cursor_is_never_overwritten(text: str, url: str, cursor: Path) -> None:
    publish(url, 1)
    cursor.write_text(text)

    with pytest.raises(UsageError, match="no cursor"):
        relay(url, cursor)

    assert cursor.read_text() == text


def test_entries_are_relayed_to_the_connection_of_the_target(
    url: str, cursor: Path, tmp_path: Path, valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = RedisReceiver(valkey_server)
    monkeypatch.setenv("TAPE_CONFIG", configured(tmp_path, receiver.name, receiver.settings))
    entries = publish(url, 1, 2, 3)

    run_outbox_relay(url, to=receiver.target, cursor_path=cursor, once=True)
    cursor.unlink()
    run_outbox_relay(url, to=receiver.target, cursor_path=cursor, once=True)

    received = anyio.run(receiver.received)
    assert [each.payload for each in received] == [1, 2, 3]
    assert [each.key for each in received] == [f"{entry.epoch}.{entry.global_seq}" for entry in entries]


def test_a_target_without_a_connection_is_a_mistake(url: str, cursor: Path) -> None:
    with pytest.raises(UsageError, match=r"connections\.nats"):
        run_outbox_relay(url, to="nats://orders", cursor_path=cursor, once=True)


class SilentOncePeer:
    """Acknowledges every message but the first."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send(self, topic: str, message: Message) -> None:
        self.sent.append(message.key)
        if len(self.sent) == 1:
            raise NoAnswer("no answer within 9 s")

    async def close(self) -> None:
        return


def test_an_unacknowledged_entry_is_relayed_again_before_the_next(url: str) -> None:
    peer, entries = SilentOncePeer(), publish(url, 1, 2)

    async def connect() -> Peer:
        return peer

    async def forward_all() -> None:
        forward = to_peer(PeerConnection(PeerConfig(name="billing"), connect), "")
        for entry in entries:
            await forward(entry)

    anyio.run(forward_all)

    first, second = (f"{entry.epoch}.{entry.global_seq}" for entry in entries)
    assert peer.sent == [first, first, second]
