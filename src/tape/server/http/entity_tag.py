"""Entity tags in conditions of a request.

A weak tag, W/"1", counts as the strong one: a proxy that compresses an answer makes its tag weak.
"""

import re
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from tape.server.http.request import Request

ANY: Final = "*"
VersionTag: TypeAlias = Annotated[str, Meta(pattern='^([*]|(W/)?"[0-9]{1,18}"|[0-9]{1,18})$')]
_VERSION: Final = re.compile(r'(?:W/)?"([0-9]{1,18})"|([0-9]{1,18})')


def is_known(request: Request, tag: str) -> bool:
    """Whether the caller has the answer with this tag already."""
    known = (request.header("if-none-match") or "").strip()
    return known == ANY or tag in [each.strip().removeprefix("W/") for each in known.split(",")]


def version_of(text: str) -> int | None:
    """The version that a tag names, also without its quotes; None for any other text."""
    found = _VERSION.fullmatch(text.strip())
    return int(found[1] or found[2]) if found else None
