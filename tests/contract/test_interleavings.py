"""Any interleaving, over two nodes of every store that can have them."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given, settings

from tests.conftest import Scale
from tests.contract.backends import Backend
from tests.property.test_streams import STEPS, play_on


def test_readers_of_two_nodes_get_everything_once_in_order_or_a_gap(backend: Backend, scale: Scale) -> None:
    if backend.name == "memory":
        pytest.skip("one process has it to itself; tests/property plays it there")

    async def run(steps: Sequence[tuple[str, str, int]]) -> list[str]:
        async with backend.open_empty() as store, backend.open() as second:
            return await play_on(store, second, steps)

    @settings(max_examples=scale(30))
    @given(STEPS)
    def check(steps: list[tuple[str, str, int]]) -> None:
        assert anyio.run(run, steps) == []

    check()
