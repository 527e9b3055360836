"""What `tape doctor` has to say of one thing."""

from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """One thing that was looked at; the fix says what to do when it is not ok."""

    subject: str
    value: str
    status: Literal["ok", "warn", "fail"] = "ok"
    fix: str = ""
