"""Recovery is judged by its progress, not by how fast the machine is."""

from itertools import chain, repeat

import anyio

from tests.chaos.waiting import Remaining, Stopwatch


async def test_what_does_not_become_less_is_stuck() -> None:
    assert await Remaining("it does not end", lambda: 2, bound_s=0.01).is_stuck()


async def test_what_becomes_less_time_and_again_is_not_stuck_however_long_it_takes() -> None:
    left = chain(range(5, 0, -1), repeat(0))

    assert not await Remaining("it does not end", lambda: next(left), bound_s=0.15).is_stuck()


async def test_a_stopwatch_counts_at_most_the_time_that_passed() -> None:
    began, watch = anyio.current_time(), Stopwatch()

    counted = watch.seconds()

    assert 0 <= counted <= anyio.current_time() - began
