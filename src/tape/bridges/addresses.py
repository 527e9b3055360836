"""Which addresses a webhook may be sent to: public ones, and those that its connection lists."""

import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final, TypeAlias

import anyio
import httpcore

from tape.bridges.config import Network
from tape.work.answers import Dead

Address: TypeAlias = IPv4Address | IPv6Address
NAT64: Final = IPv6Network("64:ff9b::/96")
SITE_LOCAL: Final = IPv6Network("fec0::/10")  # deprecated, but still routed inside some networks


def is_allowed(address: Address, listed: Iterable[Network]) -> bool:
    """Whether the address is public or listed; an IPv4 address embedded in an IPv6 one is checked too."""
    inner = _inner(address)
    is_listed = any(each in network for network in listed for each in {address, inner})
    is_public = inner.is_global and not inner.is_multicast and not inner.is_reserved
    return is_listed or (is_public and inner not in SITE_LOCAL)


def _inner(address: Address) -> Address:
    if isinstance(address, IPv4Address):
        return address
    if address in NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


async def resolve(host: str, port: int, listed: Sequence[Network]) -> list[str]:
    """The addresses of a host; if one of them is not allowed, the host is refused."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise httpcore.ConnectError(f"{host!r} is not known: {error.strerror}") from error
    addresses = list(dict.fromkeys(place[4][0] for place in found))
    for address in addresses:
        if not is_allowed(ip_address(address.partition("%")[0]), listed):
            raise Dead(f"{host!r} leads to {address}, which is not public; list it in `allow` if it is meant")
    return addresses


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the address that was checked, so that a second DNS answer cannot redirect the connection."""

    def __init__(self, listed: Sequence[Network]) -> None:
        self._listed = listed
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's own signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await resolve(host, port, self._listed)
        for address in addresses[:-1]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)
