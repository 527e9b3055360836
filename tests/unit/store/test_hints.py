"""Hints that the journal has grown: each wakes once, even a false one."""

import sys

import anyio
import pytest

from tape.core.ids import GlobalSeq
from tape.store.hints import UNKNOWN, Hints, head_of
from tests.deadlines import DEADLINE_S


@pytest.mark.parametrize("head", [1, 10**18, sys.maxsize])
async def test_p9_a_head_that_does_not_exist_wakes_a_reader_once(head: int) -> None:
    hints, returns = Hints(), 0

    async def read() -> None:
        nonlocal returns
        while True:
            await hints.wait_beyond(GlobalSeq(0))
            returns += 1

    async with anyio.create_task_group() as tasks:
        hints.add(GlobalSeq(head))
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert returns == 1


async def test_a_later_hint_takes_nothing_back_of_one_that_is_not_spent() -> None:
    hints = Hints()
    hints.add(UNKNOWN)
    hints.add(GlobalSeq(3))

    with anyio.fail_after(DEADLINE_S):
        await hints.wait_beyond(GlobalSeq(10))


@pytest.mark.parametrize("text", ["", "x", "-1", " 2", "2 ", "1e9", "nan", "²", "\ufffd", "9" * 20, "9" * 5_000])
def test_what_names_no_head_may_mean_anything(text: str) -> None:
    assert head_of(text) == UNKNOWN
