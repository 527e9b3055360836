"""`client.runs` in the journal: open, close, cancel, reap, list, show, fork and diff, embedded and over gRPC alike."""

import pytest

from tape.core.diff import DiffRow
from tape.core.errors import InvalidCursor, NotFound, RunNotFound, RunOpen, UsageError
from tape.core.event import Event
from tape.core.fork import Ancestor
from tape.core.fork_policy import EffectPolicy
from tape.core.run import RunActivity
from tape.core.run_query import RunOrder, StatusFilter
from tape.core.run_state import RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.ledgers import begin_run

pytestmark = needs_ledgers


async def open_with(node: AsyncNode, run_id: str, *payloads: object) -> None:
    await node.runs.open(run_id)
    if payloads:
        await node.events.append([Event(run_id=run_id, payload=payload) for payload in payloads])  # type: ignore[arg-type]


async def test_a_run_is_opened_shown_and_closed(node: AsyncNode) -> None:
    opened = await node.runs.open("r1", label="first", app="any app", user="", session="s")
    await node.events.append([Event(run_id="r1", payload=n) for n in (1, 2)])
    before = await node.runs.show("r1")
    closed = await node.runs.close("r1")
    after = await node.runs.show("r1")

    meta = before.record.meta
    assert (opened.run_id, opened.epoch) == ("r1", before.epoch)
    assert (meta.label, meta.app, meta.user, meta.session, meta.started_at) == ("first", "any app", "", "s", None)
    assert (before.record.status, before.ledger) == (RunActivity.RUNNING, None)
    assert (closed.run_id, closed.last_seq) == ("r1", 2)
    assert (after.record.status, after.record.head.closed_seq) == (RunActivity.COMPLETE, 2)
    assert await node.runs.close("r1") == closed


async def test_a_run_without_a_name_gets_one(node: AsyncNode) -> None:
    first, second = [(await node.runs.open()).run_id for _ in range(2)]

    assert first != second and (await node.runs.show(first)).record.head.is_open


async def test_opening_an_open_run_is_a_conflict(node: AsyncNode) -> None:
    await node.runs.open("r1")

    with pytest.raises(RunOpen, match="r1"):
        await node.runs.open("r1")


@pytest.mark.parametrize("verb", ["close", "cancel", "reap", "show"])
async def test_an_unknown_run_is_not_found(node: AsyncNode, verb: str) -> None:
    with pytest.raises(RunNotFound):
        await getattr(node.runs, verb)("nobody")


async def test_only_a_closed_run_is_reaped(node: AsyncNode) -> None:
    await open_with(node, "r1", 1)
    with pytest.raises(RunOpen):
        await node.runs.reap("r1")

    await node.runs.close("r1")
    reaped = await node.runs.reap("r1")

    assert (reaped.run_id, reaped.last_seq) == ("r1", 1)
    assert (await node.runs.show("r1")).record.is_reaped


async def test_a_run_is_cancelled_with_an_entry_whether_it_was_begun_or_only_opened(node: AsyncNode) -> None:
    await open_with(node, "opened", 1)
    begun = await begin_run(node)

    cancelled = [await node.runs.cancel(run_id, "enough") for run_id in ("opened", begun.run_id)]

    opened, state = await node.runs.show("opened"), (await node.runs.show(begun.run_id)).ledger
    assert [run.run_id for run in cancelled] == ["opened", begun.run_id]
    assert (opened.record.head.closed_seq, cancelled[0].last_seq) == (2, 2)
    assert state is not None and (state.status, state.detail_json) == (RunStatus.CANCELLED, '{"reason":"enough"}')


async def test_a_run_is_shown_with_its_ledger_and_what_it_owes(node: AsyncNode) -> None:
    run = await begin_run(node, "1", "worker", "payments")
    await node.obligations.register(run.run_id, "effect", "refund")

    shown = await node.runs.show(run.run_id)

    assert shown.ledger == await node.runs.get(run.run_id)
    assert list(shown.obligations) == list(await node.obligations.list_all(run.run_id))
    assert shown.record.run_id == run.run_id


async def test_runs_are_listed_in_pages_with_filters(node: AsyncNode) -> None:
    for number in range(5):
        await node.runs.open(f"a.{number}", label="x" if number % 2 else "")
    await node.runs.close("a.3")

    first = await node.runs.list(prefix="a.", limit=3)
    second = await node.runs.list(prefix="a.", limit=3, cursor=first.next_cursor)

    assert [run.run_id for run in (*first.rows, *second.rows)] == [f"a.{number}" for number in range(5)]
    assert first.next_cursor and not second.next_cursor
    assert [run.run_id for run in (await node.runs.list(label="x", status=StatusFilter.OPEN)).rows] == ["a.1"]
    assert {run.run_id for run in (await node.runs.list(label="")).rows} == {"a.0", "a.2", "a.4"}
    assert (await node.runs.list(order=RunOrder.OLDEST, limit=1)).rows[0] == (await node.runs.show("a.0")).record


async def test_a_list_of_runs_that_cannot_be_is_refused(node: AsyncNode) -> None:
    with pytest.raises(UsageError, match="limit"):
        await node.runs.list(limit=1_001)
    with pytest.raises(UsageError, match="prefix"):
        await node.runs.list(prefix="a/b")
    with pytest.raises(InvalidCursor):
        await node.runs.list(cursor="x")


async def test_a_fork_is_its_parent_up_to_a_seq_and_then_its_own(node: AsyncNode) -> None:
    await open_with(node, "parent", 1, 2, 3)

    forked = await node.runs.fork("parent", 2, mutation={"n": 5}, reason="what if")

    child = (await node.runs.show(forked.child_run_id)).record
    assert (forked.parent_run_id, forked.at_seq) == ("parent", 2)
    assert (child.head.last_seq, child.head.lineage) == (4, (Ancestor(child.head.lineage[0].run_id, 2),))  # type: ignore[arg-type]
    assert [run.run_id for run in (await node.runs.list(parent="parent")).rows] == [child.run_id]


async def test_a_fork_with_effects_inherits_the_ledgers(node: AsyncNode) -> None:
    run = await begin_run(node)

    forked = await node.runs.fork(run.run_id, 1, effects=EffectPolicy.STUB)

    child = (await node.runs.show(forked.child_run_id)).ledger
    assert child is not None and child.labels["tape.effects"] == "stub"


async def test_a_fork_that_cannot_be_is_refused(node: AsyncNode) -> None:
    await open_with(node, "parent", 1)

    with pytest.raises(NotFound):
        await node.runs.fork("nobody", 0)
    with pytest.raises(UsageError, match="n_turns"):
        await node.runs.fork("parent", 1, n_turns=201)
    with pytest.raises((NotFound, UsageError), match="producer"):
        await node.runs.fork("parent", 1, producer="nobody")


async def test_two_runs_are_compared_from_their_last_shared_entry_on(node: AsyncNode) -> None:
    await open_with(node, "parent", 1, 2, 3)
    child = (await node.runs.fork("parent", 1)).child_run_id
    await node.events.append([Event(run_id=child, payload=n) for n in (2, 4)])

    found = await node.runs.diff("parent", child)

    (pair,) = [row for row in found.entries if row.one is not None]
    assert (found.one, found.other, found.shared, found.places, found.differing) == ("parent", child, 1, 3, 2)
    assert isinstance(pair, DiffRow) and pair.other is not None and pair.one is not None
    assert (pair.one.payload, pair.other.payload) == (3, 4)
    assert len((await node.runs.diff("parent", child, limit=1)).entries) == 1


async def test_a_comparison_fits_into_an_answer_however_large_the_entries_are(node: AsyncNode) -> None:
    for run_id in ("one", "other"):
        await node.runs.open(run_id)
        for number in range(6):
            await node.events.append(Event(run_id=run_id, payload=f"{run_id}{number}" + "x" * 900_000))

    found = await node.runs.diff("one", "other")

    assert (found.differing, len(found.entries)) == (6, 1)
