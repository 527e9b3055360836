"""How long a store waits for a server that does not answer."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Bounds for a server that may be gone: a half-open connection reports no error.

    The appender looks for the outcome of a lost request for `recovery_s`. A connection that listens and has received
    nothing for `keep_alive_s` sends a query, and is closed when the answer takes longer than `echo_s`.
    """

    connect_s: float
    answer_s: float
    recovery_s: float = 15.0
    keep_alive_s: float = 15.0
    echo_s: float = 2.0
    close_s: float = 5.0
