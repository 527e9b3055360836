"""How many tasks of a reaction may start now, by free slots and by rate."""

from typing import Final, NamedTuple

SECOND_US: Final = 1_000_000
BURST: Final = 20  # a burst is a twentieth of a second's starts


class Share(NamedTuple):
    """How many may start, and the earliest next start in microseconds (0: any time)."""

    starts: int
    next_start_us: int


def share(wanted: int, *, slots: int, rate_per_s: int, now_us: int, next_start_us: int) -> Share:
    """How many of the wanted starts the limits allow; rate 0 means no limit."""
    starts = max(min(wanted, slots), 0)
    if rate_per_s == 0:
        return Share(starts, 0)
    paced = min(starts, _allowance(rate_per_s, now_us, next_start_us))
    return Share(paced, max(next_start_us, now_us) + _span_us(paced, rate_per_s) if paced else next_start_us)


def wait_us(rate_per_s: int, now_us: int, next_start_us: int) -> int:
    """Microseconds until the next start is allowed."""
    return max(next_start_us - _tolerance_us(rate_per_s) - now_us, 0) if rate_per_s else 0


def _allowance(rate_per_s: int, now_us: int, next_start_us: int) -> int:
    """GCRA: a start may be early by up to the length of a burst."""
    room_us = now_us + _tolerance_us(rate_per_s) - max(next_start_us, now_us)
    return room_us * rate_per_s // SECOND_US + 1 if room_us >= 0 else 0


def _tolerance_us(rate_per_s: int) -> int:
    return _span_us(max(rate_per_s // BURST, 1) - 1, rate_per_s)


def _span_us(starts: int, rate_per_s: int) -> int:
    return -(-starts * SECOND_US // rate_per_s)  # rounded up, so that rounding never allows more
