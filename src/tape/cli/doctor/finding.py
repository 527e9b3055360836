"""One finding of `tape doctor`."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """A checked item; `fix` says what to do when it is not ok."""

    subject: str
    value: str
    status: Literal["ok", "warn", "fail"] = "ok"
    fix: str = ""
