"""A claim on a ledger item: its owner, the end of the lease, and the fencing number."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tape.core.errors import StaleClaim, UsageError, quoted
from tape.core.ids import ID_IN_WORDS, is_id

WORK_LEASE: Final = timedelta(seconds=60)
RUN_LEASE: Final = timedelta(seconds=120)
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The newest claim; without an owner the item is unclaimed. The attempt (fencing number) never falls."""

    owner: str = ""
    attempt: int = 0
    expires_at_ms: int = 0

    def is_live(self, now_ms: int) -> bool:
        return bool(self.owner) and now_ms < self.expires_at_ms

    def taken(self, owner: str, lease: timedelta, now_ms: int) -> "Claim":
        return Claim(owner=owner, attempt=self.attempt + 1, expires_at_ms=now_ms + lease_ms(lease))

    def renewed(self, lease: timedelta, now_ms: int) -> "Claim":
        return replace(self, expires_at_ms=now_ms + lease_ms(lease))

    def released(self) -> "Claim":
        return Claim(attempt=self.attempt)

    def check(self, what: str, attempt: int) -> None:
        """Raises StaleClaim unless this attempt holds the claim."""
        self.check_newest(what, attempt)
        if not self.owner:
            raise StaleClaim(f"attempt {attempt} on {what} is over: nobody holds it; claim it again")

    def check_newest(self, what: str, attempt: int) -> None:
        """Raises StaleClaim if a newer attempt exists; an attempt that was released still passes."""
        if attempt != self.attempt:
            raise StaleClaim(f"attempt {attempt} is not the newest on {what}, which is {self.attempt}; claim it again")


UNCLAIMED: Final = Claim()


def check_lease(lease: timedelta) -> timedelta:
    if not isinstance(lease, timedelta) or not SHORTEST <= lease <= LONGEST:
        raise UsageError(f"a lease is {SHORTEST.seconds} s to {LONGEST.seconds} s, not {quoted(str(lease))}")
    return lease


def check_owner(owner: str) -> str:
    if not isinstance(owner, str) or not is_id(owner):
        raise UsageError(f"an owner is required: {ID_IN_WORDS}, not {quoted(owner)}")
    return owner


def lease_ms(lease: timedelta) -> int:
    return lease // timedelta(milliseconds=1)
