"""Lists of ledgers: filtered in the store, read page by page, the same embedded and over gRPC."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import pytest

from tape.core.effect import DispatchMode, Effect, EffectStatus, Semantics
from tape.core.errors import InvalidCursor, NotReady, UsageError
from tape.core.obligation import ObligationStatus
from tape.core.page import Page, encode_cursor
from tape.core.run_state import RunStatus
from tape.core.timer import TimerStatus
from tape.operations.values import ListValues
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.ledgers import begin_run, queue_effect

pytestmark = needs_ledgers

COUNT = 7


class Listed(NamedTuple):
    """A list: writes its rows, reads a page, reads all, and names a row."""

    fill: Callable[[AsyncNode, str], Awaitable[object]]
    page: Callable[..., Awaitable[Page[Any]]]
    everything: Callable[[AsyncNode, str], Awaitable[Sequence[Any]]]
    name: Callable[[Any], object]
    expected: list[object]


async def decide(node: AsyncNode, run_id: str) -> None:
    for index in range(COUNT):
        await node.decisions.record(run_id, index, model="small" if index % 2 else "large")


async def act(node: AsyncNode, run_id: str) -> None:
    """Effects in the order they begin, of which two have an outcome and three a connector."""
    for index in range(COUNT):
        connector, mode = ("bank", DispatchMode.OUTBOX) if index % 3 == 0 else ("", DispatchMode.INLINE)
        key = f"{COUNT - index}"
        await node.effects.begin(run_id, "t", key=key, connector=connector, dispatch_mode=mode)
        if index in (1, 4):
            await node.effects.complete(run_id, key, EffectStatus.FAILED)


async def owe(node: AsyncNode, run_id: str) -> None:
    for index in range(COUNT):
        owed = await node.obligations.register(run_id, f"e{index}", "undo")
        if index in (1, 4):
            await node.obligations.resolve(run_id, owed.number, ObligationStatus.STUCK)


async def know(node: AsyncNode, run_id: str) -> None:
    for name in ("b", "g", "a", "c", "f", "e", "d", "gone"):
        await node.values.set("n", name, 1)
    await node.values.set("other", "a", 1)
    await node.values.delete("n", "gone")


async def talk(node: AsyncNode, run_id: str) -> None:
    for number in (*range(COUNT), "gone"):
        await node.sessions.create("app", "ann", f"s{number}")
    await node.sessions.create("app", "ann-2", "other")
    await node.sessions.delete("app", "ann", "sgone")


async def arm(node: AsyncNode, run_id: str) -> None:
    other = await begin_run(node, "other")
    await node.timers.set(other.run_id, "t", 5)
    for index in range(COUNT):
        await node.timers.set(run_id, f"t{index}", 100 - index, "late" if index % 3 == 0 else "soon")
        if index in (1, 4):
            await node.timers.cancel(run_id, f"t{index}")


async def answer(node: AsyncNode, run_id: str) -> None:
    other = await begin_run(node, "other")
    await node.gates.send(other.run_id, "g", 1)
    for name in ("b", "g", "a", "c", "f", "e", "d"):
        await node.gates.send(run_id, name, 1)


LISTS = {
    "decisions": Listed(
        decide, lambda node, run, **page: node.decisions.list(run, **page),
        lambda node, run: node.decisions.list_all(run), lambda row: row.decision_index, [*range(COUNT)],
    ),
    "effects": Listed(
        act, lambda node, run, **page: node.effects.list(run, **page), lambda node, run: node.effects.list_all(run),
        lambda row: row.idempotency_key, [str(COUNT - index) for index in range(COUNT)],
    ),
    "obligations": Listed(
        owe, lambda node, run, **page: node.obligations.list(run, **page),
        lambda node, run: node.obligations.list_all(run), lambda row: row.number, [*range(COUNT, 0, -1)],
    ),
    "timers": Listed(
        arm, lambda node, run, **page: node.timers.list(run, **page), lambda node, run: node.timers.list_all(run),
        lambda row: row.timer_id, [f"t{index}" for index in reversed(range(COUNT))],
    ),
    "gates": Listed(
        answer, lambda node, run, **page: node.gates.list(run, **page), lambda node, run: node.gates.list_all(run),
        lambda row: row.gate, [*"abcdefg"],
    ),
    "values": Listed(
        know, lambda node, run, **page: node.values.list("n", **page), lambda node, run: node.values.list_all("n"),
        lambda row: row.key, [*"abcdefg"],
    ),
    "sessions": Listed(
        talk, lambda node, run, **page: node.sessions.list("app", "ann", **page),
        lambda node, run: node.sessions.list_all("app", "ann"), lambda row: row.of.session,
        [f"s{number}" for number in range(COUNT)],
    ),
}  # fmt: skip

IN_ORDER = [
    LISTS[name] for name in ("decisions", "obligations", "timers", "gates", "values")
]  # others follow the clock

every_list = pytest.mark.parametrize("listed", LISTS.values(), ids=LISTS)


async def follow(listed: Listed, node: AsyncNode, run_id: str, limit: int) -> list[list[Any]]:
    """All pages of a list."""
    pages, cursor = [], ""
    while True:
        page = await listed.page(node, run_id, limit=limit, cursor=cursor)
        pages.append([listed.name(row) for row in page.rows])
        cursor = page.next_cursor
        if not cursor:
            return pages


@every_list
async def test_pages_have_every_row_once_and_the_last_no_cursor(node: AsyncNode, listed: Listed) -> None:
    run = await begin_run(node)
    nothing = await listed.page(node, run.run_id)
    await listed.fill(node, run.run_id)

    pages = await follow(listed, node, run.run_id, 3)
    whole = await listed.page(node, run.run_id, limit=COUNT)

    rows = [row for page in pages for row in page]
    ordered = rows if listed in IN_ORDER else sorted(rows, key=listed.expected.index)
    assert [len(page) for page in pages] == [3, 3, 1] and ordered == listed.expected
    assert [listed.name(row) for row in await listed.everything(node, run.run_id)] == rows
    assert (list(nothing.rows), nothing.next_cursor, whole.next_cursor) == ([], "", "")
    assert [listed.name(row) for row in whole.rows] == rows


async def test_a_page_has_a_limit(node: AsyncNode) -> None:
    for listed in LISTS.values():
        for limit in (-1, 10_001):
            with pytest.raises(UsageError, match="a limit is 1 to 10,000"):
                await listed.page(node, "r1", limit=limit)


async def test_a_cursor_of_another_list_is_refused(node: AsyncNode) -> None:
    run = await begin_run(node)
    await decide(node, run.run_id)
    other = (await node.decisions.list(run.run_id, model="small", limit=1)).next_cursor

    for listed in LISTS.values():
        with pytest.raises(InvalidCursor):
            await listed.page(node, run.run_id, cursor=other)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"], ids=["U+0000", "a lone surrogate"])
async def test_a_forged_cursor_with_a_text_that_no_store_holds_is_refused(node: AsyncNode, text: str) -> None:
    forged = encode_cursor((text,), ListValues(namespace="n").question)

    with pytest.raises(InvalidCursor):
        await node.values.list("n", cursor=forged)


async def test_effects_are_in_the_order_they_began(node: AsyncNode) -> None:
    run = await begin_run(node)
    await act(node, run.run_id)

    times = [effect.began_at_ms for effect in (await node.effects.list(run.run_id)).rows]

    assert times == sorted(times)


async def test_the_session_with_the_newest_event_is_first(node: AsyncNode) -> None:
    await talk(node, "")
    before = (await node.sessions.list("app", "ann")).rows[0].updated_at_ms
    while (await node.sessions.append("app", "ann", "s3", 1)).updated_at_ms <= before:
        pass

    newest = (await node.sessions.list("app", "ann", limit=1)).rows

    assert [session.of.session for session in newest] == ["s3"]


async def test_effects_are_filtered_before_the_limit(node: AsyncNode) -> None:
    run = await begin_run(node)
    await act(node, run.run_id)

    failed = await node.effects.list(run.run_id, status=EffectStatus.FAILED, limit=2)
    pending = await node.effects.list_all(run.run_id, status=EffectStatus.PENDING)
    of_bank = await node.effects.list(run.run_id, connector="bank", limit=3)

    assert ({effect.idempotency_key for effect in failed.rows}, failed.next_cursor) == ({"6", "3"}, "")
    assert {effect.idempotency_key for effect in pending} == {"7", "5", "4", "2", "1"}
    assert ({effect.idempotency_key for effect in of_bank.rows}, of_bank.next_cursor) == ({"7", "4", "1"}, "")


async def test_an_inline_effect_is_listed_by_its_connector_and_not_dispatched(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.effects.begin(run.run_id, "t", connector="bank")

    assert len(await node.effects.list_all(run.run_id, connector="bank")) == 1
    assert await node.dispatch.due("bank") == []


async def test_decisions_are_filtered_before_the_limit(node: AsyncNode) -> None:
    run = await begin_run(node)
    await decide(node, run.run_id)

    found = await node.decisions.list(run.run_id, model="small", limit=3)

    assert ([each.decision_index for each in found.rows], found.next_cursor) == ([1, 3, 5], "")


async def test_obligations_are_filtered_before_the_limit(node: AsyncNode) -> None:
    run = await begin_run(node)
    await owe(node, run.run_id)

    stuck = await node.obligations.list(run.run_id, status=ObligationStatus.STUCK, limit=2)
    unresolved = await node.obligations.list(run.run_id, only_unresolved=True, limit=5)

    assert ([each.number for each in stuck.rows], stuck.next_cursor) == ([5, 2], "")
    assert ([each.number for each in unresolved.rows], unresolved.next_cursor) == ([7, 6, 4, 3, 1], "")


async def test_timers_are_filtered_before_the_limit(node: AsyncNode) -> None:
    run = await begin_run(node)
    await arm(node, run.run_id)

    cancelled = await node.timers.list(run.run_id, status=TimerStatus.CANCELLED, limit=2)
    late = await node.timers.list(run.run_id, kind="late", limit=3)

    assert ([timer.timer_id for timer in cancelled.rows], cancelled.next_cursor) == (["t4", "t1"], "")
    assert ([timer.timer_id for timer in late.rows], late.next_cursor) == (["t6", "t3", "t0"], "")


async def test_timers_of_all_runs_are_listed_by_status(node: AsyncNode) -> None:
    runs = [await begin_run(node, name) for name in "123"]
    for run in runs:
        await node.timers.set(run.run_id, "t", 5)
    await node.timers.cancel(runs[1].run_id, "t")

    found = await node.timers.list_all(status=TimerStatus.SET)

    assert [timer.run_id for timer in found] == sorted((runs[0].run_id, runs[2].run_id))
    assert [timer.run_id for timer in await node.timers.list_all(status=TimerStatus.CANCELLED)] == [runs[1].run_id]


async def test_a_timer_is_found_by_its_name(node: AsyncNode) -> None:
    run = await begin_run(node)
    timer = await node.timers.set(run.run_id, "t", 5, "late", 7)

    assert await node.timers.get(run.run_id, "t") == timer
    assert await node.timers.get(run.run_id, "other") is None


async def test_gates_that_runs_wait_at_are_listed_for_all_runs(node: AsyncNode) -> None:
    runs = [await begin_run(node, name) for name in "12345"]
    for run in runs:
        await node.gates.wait(run.run_id, "approval", context=run.run_id)
    await node.gates.send(runs[0].run_id, "approval")
    await node.runs.end(runs[1].run_id, RunStatus.CANCELLED)
    waiting = sorted(run.run_id for run in runs[2:])

    first = await node.gates.list(limit=2)
    rest = await node.gates.list(limit=2, cursor=first.next_cursor)

    assert [gate.run_id for gate in (*first.rows, *rest.rows)] == waiting and rest.next_cursor == ""
    assert [(gate.gate, gate.waiting) for gate in await node.gates.list_all()] == [("approval", 0)] * 3


async def test_a_page_of_waiting_gates_ends_at_its_bytes(node: AsyncNode) -> None:
    runs = [await begin_run(node, name) for name in "123456"]
    for run in runs:
        await node.gates.wait(run.run_id, "approval", context="x" * 900_000)

    first = await node.gates.list()

    assert 1 <= len(first.rows) < 6 and first.next_cursor
    assert len({gate.run_id for gate in await node.gates.list_all()}) == 6


async def test_an_obligation_is_found_by_its_number(node: AsyncNode) -> None:
    run = await begin_run(node)
    owed = [await node.obligations.register(run.run_id, name, "undo") for name in "ab"]

    assert [await node.obligations.get(run.run_id, each) for each in (1, 2)] == owed
    for number in (0, 3, 1 << 62, (1 << 63) - 1):
        assert await node.obligations.get(run.run_id, number) is None


async def in_doubt(node: AsyncNode, semantics: Semantics = Semantics.IDEMPOTENT) -> Effect:
    effect = await queue_effect(node, semantics)
    held = (await node.dispatch.claim(effect.run_id, effect.idempotency_key, "d1")).effect
    return await node.dispatch.attempt(held.run_id, held.idempotency_key, held.claim.attempt, "bank closed")


async def test_an_effect_in_doubt_that_is_retried_is_due_again(node: AsyncNode) -> None:
    doubt = await in_doubt(node)

    again = await node.effects.retry(doubt.run_id, doubt.idempotency_key)

    assert (doubt.status, again.status, again.dispatch_attempts) == (EffectStatus.UNKNOWN, EffectStatus.PENDING, 0)
    assert [effect.idempotency_key for effect in await node.dispatch.due("bank")] == [doubt.idempotency_key]
    assert (await node.dispatch.claim(doubt.run_id, doubt.idempotency_key, "d2")).is_acquired
    assert (await node.effects.retry(doubt.run_id, doubt.idempotency_key)).claim.owner == "d2"


async def test_an_effect_that_must_not_be_repeated_is_not_retried(node: AsyncNode) -> None:
    doubt = await in_doubt(node, Semantics.NON_IDEMPOTENT)

    with pytest.raises(NotReady, match="must not be repeated"):
        await node.effects.retry(doubt.run_id, doubt.idempotency_key)


async def test_an_effect_of_a_failed_run_is_not_retried(node: AsyncNode) -> None:
    doubt = await in_doubt(node)
    await node.runs.end(doubt.run_id, RunStatus.FAILED)

    with pytest.raises(NotReady, match="nobody does its effects"):
        await node.effects.retry(doubt.run_id, doubt.idempotency_key)
