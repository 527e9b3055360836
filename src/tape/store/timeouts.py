"""How long a store waits for a server that says nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """What a peer may take before it is taken for gone: a half-open connection never says so itself.

    Who appends looks for the outcome of a lost request for `recovery_s`. A connection that listens and has heard
    nothing for `keep_alive_s` asks, and is given up when the answer takes longer than `echo_s`.
    """

    connect_s: float
    answer_s: float
    recovery_s: float = 15.0
    keep_alive_s: float = 15.0
    echo_s: float = 2.0
    close_s: float = 5.0
