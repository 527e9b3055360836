"""Who may ask: a page on a foreign name, or of a foreign origin, cannot reach in."""

import pytest

from tape.server.http.errors import MisdirectedRequest, OriginNotAllowed
from tape.server.http.guard import Guard

guard = Guard(origins=frozenset({"https://console.example"}))

HOSTS = [
    "127.0.0.1:7880",
    "localhost:7880",
    "LocalHost:7880",
    "[::1]:7880",
    "127.0.0.1",
    "localhost",
    "[::1]",
    "localhost:9999",
]
STRANGERS = [
    "evil.example", "evil.example:7880", "127.0.0.1:x", "localhost:", "localhost:123456", "127.0.0.1.evil.example",
    "localhost.evil.example:7880", "::1", "", " localhost", "localhost:7880:7880", "0.0.0.0:7880", "127.1:7880",
    "localhost@evil.example", "2130706433",
]  # fmt: skip
FOREIGN = [
    "null", "http://evil.example", "http://localhost", "https://localhost:7880", "http://localhost:7881", "",
    "http://127.0.0.1:7880", "https://console.example.evil.example", "https://console.example/", "file://",
]  # fmt: skip


def headers(host: str | None, *origins: str) -> list[tuple[bytes, bytes]]:
    hosts = [] if host is None else [(b"host", host.encode())]
    return [*hosts, *((b"origin", origin.encode()) for origin in origins)]


@pytest.mark.parametrize("host", HOSTS)
def test_a_loopback_host_is_served_with_any_port_or_none(host: str) -> None:
    assert guard.check(headers(host)) is None


@pytest.mark.parametrize("host", STRANGERS)
def test_any_other_host_is_misdirected(host: str) -> None:
    with pytest.raises(MisdirectedRequest):
        guard.check(headers(host))


def test_a_request_without_a_host_or_with_two_is_misdirected() -> None:
    with pytest.raises(MisdirectedRequest):
        guard.check(headers(None))
    with pytest.raises(MisdirectedRequest):
        guard.check([*headers("localhost"), *headers("localhost")])


@pytest.mark.parametrize("origin", ["http://localhost:7880", "https://console.example"])
def test_our_own_origin_and_a_listed_one_may_ask(origin: str) -> None:
    assert guard.check(headers("localhost:7880", origin)) == origin


@pytest.mark.parametrize("origin", FOREIGN)
def test_any_other_origin_may_not(origin: str) -> None:
    with pytest.raises(OriginNotAllowed):
        guard.check(headers("localhost:7880", origin))


def test_two_origins_may_not_ask() -> None:
    with pytest.raises(OriginNotAllowed):
        guard.check(headers("localhost:7880", "http://localhost:7880", "http://localhost:7880"))


def test_the_host_is_looked_at_before_the_origin() -> None:
    with pytest.raises(MisdirectedRequest):
        guard.check(headers("evil.example", "http://evil.example"))


def test_a_refusal_quotes_no_more_than_a_glance() -> None:
    with pytest.raises(OriginNotAllowed) as refused:
        guard.check(headers("localhost", "http://" + "x" * 5000))

    assert len(str(refused.value)) < 200
