"""The address a server listens on, which must be a loopback address."""

from dataclasses import dataclass
from typing import Final

from tape.core.errors import UsageError, quoted

HOSTS: Final = {"127.0.0.1": "127.0.0.1", "localhost": "127.0.0.1", "[::1]": "::1", "::1": "::1"}


@dataclass(frozen=True, slots=True)
class Address:
    """A loopback host and a port; port 0 means any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        name, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65_535:
            raise UsageError(f"an address is HOST:PORT, like 127.0.0.1:7880, not {quoted(text)}")
        host = HOSTS.get(name)
        if host is None:
            raise UsageError(f"only this machine may be served until there are grants: 127.0.0.1, not {quoted(name)}")
        return cls(host, int(port))

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if self.is_ipv6 else f"http://{self.host}:{self.port}"
