"""The variables that Kubernetes adds to a container for each Service of its namespace.

A Service called `tape` gives `TAPE_PORT=tcp://10.0.0.1:80`, one called `tape-http` gives `TAPE_HTTP_PORT=…`, and so on:
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
"""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

SUFFIX: Final = re.compile(
    r"(?P<host>SERVICE_HOST)|(?P<port>SERVICE_PORT(?:_[A-Z0-9_]+)?)|(?P<address>PORT)"
    r"|PORT_(?P<number>[0-9]+)_(?P<protocol>TCP|UDP|SCTP)(?:_(?P<part>PROTO|PORT|ADDR))?"
)
PROTOCOLS: Final = ("tcp", "udp", "sctp")


def is_service_link(name: str, value: str) -> bool:
    """Whether both name and value are those of a variable that Kubernetes sets for a Service."""
    return any(_is_value(suffix, value) for suffix in suffixes(name))


def suffixes(name: str) -> list[re.Match[str]]:
    """The possible suffixes of a name, by where the Service's name may end."""
    ends = [place for place, letter in enumerate(name) if letter == "_"]
    found = [SUFFIX.fullmatch(name, end + 1) for end in ends if re.fullmatch("[A-Z0-9_]+", name)]
    return [suffix for suffix in found if suffix]


def _is_value(suffix: re.Match[str], value: str) -> bool:
    if suffix["host"] or suffix["part"] == "ADDR":
        return _is_host(value)
    if suffix["port"]:
        return _is_port(value)
    if suffix["address"]:
        return _is_address(value, PROTOCOLS)
    protocol = suffix["protocol"].lower()
    if suffix["part"] is None:
        return _is_address(value, (protocol,)) and value.endswith(f":{suffix['number']}")
    return bool(value == (protocol if suffix["part"] == "PROTO" else suffix["number"]))


def _is_host(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[1-9][0-9]{0,4}", text) is not None and int(text) < 1 << 16


def _is_address(text: str, protocols: tuple[str, ...]) -> bool:
    """`tcp://10.0.0.1:80` or `tcp://[fd00::1]:80`, and nothing more."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = parts.netloc.rpartition(":")[2]
    is_plain = text == f"{parts.scheme}://{shown}:{port}"
    return is_plain and parts.scheme in protocols and _is_host(host) and _is_port(port)
