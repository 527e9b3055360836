"""`decide` is the oracle: a store judges groups exactly as it does, conflicts and all. P18 follows."""

from collections.abc import Sequence

import anyio
from hypothesis import given, strategies as st

from tape.core.errors import TapeError
from tape.core.fork import Fork
from tape.core.fork_request import fork_request
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import AppendOutcome, Store
from tape.core.run import Head
from tape.core.sequence import Accepted, AppendRequest, AppendVerdict, Cell, CellId, KeyRecord, Known, Refused, decide
from tests.contract.backends import Backend
from tests.contract.events import change, make_event

RUNS = st.sampled_from(["a", "b", "c", "d"])
EVENTS = st.lists(st.tuples(RUNS, st.integers(0, 1), st.one_of(st.none(), st.integers(1, 12))), min_size=0, max_size=3)
FORKS = st.tuples(st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 4), st.sampled_from([None, 1, 2]))
CELLS = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3), max_size=2)


@st.composite
def requests(draw: st.DrawFn, has_cells: bool) -> AppendRequest:
    events = tuple(make_event(run, n, cause=cause) for run, n, cause in draw(EVENTS))
    cells = tuple(change(key, seen) for key, seen in draw(CELLS).items()) if has_cells else ()
    if not events and not cells:
        events = (make_event("a"),)
    one_run = len({event.run_id for event in events}) == 1
    expected = Seq(draw(st.integers(0, 4))) if one_run and draw(st.booleans()) else None
    key = draw(st.one_of(st.none(), st.sampled_from(["k1", "k2"])))
    return AppendRequest(events=events, cells=cells, key=key, expected_seq=expected, opens=draw(st.booleans()))


@st.composite
def forks(draw: st.DrawFn, has_cells: bool) -> AppendRequest:
    """A fork of any run at any seq, mostly an invalid one, sometimes with a cause."""
    (child, parent, *_), at_seq, mutation = draw(FORKS)
    begun = fork_request(RunId(child), Fork(RunId(parent), Seq(at_seq)), mutation)
    more_events = tuple(make_event(child, n, cause=cause) for _, n, cause in draw(EVENTS))
    cells = tuple(change(key, seen) for key, seen in draw(CELLS).items()) if has_cells else ()
    key = draw(st.one_of(st.none(), st.sampled_from(["k1", "k2"])))
    return AppendRequest(events=(*begun.events, *more_events), cells=cells, key=key, fork=begun.fork)


def groups(has_cells: bool) -> st.SearchStrategy[list[list[AppendRequest]]]:
    either = st.one_of(requests(has_cells), requests(has_cells), forks(has_cells))
    return st.lists(st.lists(either, min_size=1, max_size=6), min_size=1, max_size=6)


class Model:
    """The state of a store after its requests."""

    def __init__(self) -> None:
        self.heads: dict[RunId, Head] = {}
        self.keys: dict[str, KeyRecord] = {}
        self.cells: dict[CellId, Cell] = {}
        self.depths: dict[GlobalSeq, int] = {}
        self.head = GlobalSeq(0)

    def judge(self, group: Sequence[AppendRequest]) -> list[AppendVerdict]:
        versions = {cell_id: cell.version for cell_id, cell in self.cells.items()}
        decision = decide(group, Known(self.head, 0, self.heads, self.keys, versions, self.depths))
        for verdict in decision.verdicts:
            if isinstance(verdict, Accepted):
                self.depths |= {GlobalSeq(verdict.first + n): depth for n, depth in enumerate(verdict.depths)}
        self.heads |= decision.heads
        self.keys |= decision.keys
        self.cells |= decision.cells
        self.head = decision.head
        return decision.verdicts


def agrees(verdict: AppendVerdict, outcome: AppendOutcome) -> bool:
    if isinstance(verdict, Refused):
        return type(outcome) is type(verdict.error) and str(outcome) == str(verdict.error)
    if isinstance(outcome, TapeError):
        return False
    first, seqs = (
        (verdict.first, verdict.seqs) if isinstance(verdict, Accepted) else (verdict.record.first, verdict.record.seqs)
    )
    return [(entry.global_seq, entry.seq) for entry in outcome] == [(first + n, seq) for n, seq in enumerate(seqs)]


async def play(store: Store, groups: Sequence[Sequence[AppendRequest]]) -> None:
    model = Model()
    for group in groups:
        outcomes = await store.journal.append(group)
        verdicts = model.judge(group)
        assert all(agrees(*pair) for pair in zip(verdicts, outcomes, strict=True)), (verdicts, outcomes)
    assert (await store.journal.bounds()).head == model.head
    assert await store.runs.heads(list(model.heads)) == model.heads
    assert not model.cells or await store.cells.read(list(model.cells)) == model.cells
    depths = {entry.global_seq: entry.depth for entry in (await store.journal.read(GlobalSeq(0))).entries}
    assert depths == model.depths


def test_p18_every_store_judges_every_group_as_decide_does(backend: Backend) -> None:
    async def run(groups: Sequence[Sequence[AppendRequest]]) -> None:
        async with backend.open_empty() as store:
            await play(store, groups)

    @given(groups(backend.has_ledgers))
    def check(groups: list[list[AppendRequest]]) -> None:
        anyio.run(run, groups)

    check()
