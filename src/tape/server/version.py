"""The version of the server."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def server_version() -> str:
    try:
        return version("tape-bus")
    except PackageNotFoundError:
        return "unknown"
