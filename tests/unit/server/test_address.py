"""Where a server may listen: on this machine and nowhere else."""

import pytest

from tape.core.errors import UsageError
from tape.server.http.address import Address


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:7880", "http://127.0.0.1:7880"),
        ("localhost:0", "http://127.0.0.1:0"),
        ("[::1]:7880", "http://[::1]:7880"),
        ("::1:7880", "http://[::1]:7880"),
    ],
)
def test_a_loopback_address_is_taken(text: str, url: str) -> None:
    assert Address.parse(text).url == url


@pytest.mark.parametrize(
    "text", ["0.0.0.0:7880", "[::]:7880", ":7880", "192.168.0.1:7880", "example.org:80", "127.0.0.1.example.org:80"]
)
def test_any_other_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="only this machine"):
        Address.parse(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "7880", "localhost:", "localhost:x", "localhost:65536", "localhost:-1", ""]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        Address.parse(text)
