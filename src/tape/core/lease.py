"""A producer's lease: how often it is renewed, and when it is stale."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tape.core.errors import UsageError

RENEW: Final = timedelta(seconds=2)
STALE: Final = timedelta(seconds=6)
GONE: Final = STALE + timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """How often a broker renews its runs, and how long a producer may be silent before others close its runs."""

    renew: timedelta = RENEW
    gone: timedelta = GONE

    def __post_init__(self) -> None:
        if not timedelta(0) < self.renew < self.gone:
            raise UsageError(f"a lease is renewed before it is gone, not every {self.renew} and gone in {self.gone}")
