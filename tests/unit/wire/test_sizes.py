"""A claim leases only what its answer can carry, so a size must never be too small."""

from tape.core.claim import Claim
from tape.core.ids import RunId
from tape.core.timer import Timer, TimerStatus
from tape.wire.messages.ledgers import TIMER
from tape.wire.pages import size

LARGEST = (1 << 63) - 1


def test_the_size_of_a_timer_covers_its_longest_names_and_its_claim() -> None:
    longest = Timer(
        run_id=RunId("r" * 128),
        timer_id="😀" * 256,
        fire_at_ms=LARGEST,
        kind="😀" * 256,
        payload_json='"😀"',
        status=TimerStatus.FIRED,
        claim=Claim(owner="o" * 128, attempt=LARGEST, expires_at_ms=LARGEST),
        app="a" * 128,
    )

    assert size(TIMER.message(longest)) <= longest.size
