"""A run with all its ledgers, against a simple model."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tape.core.budget import Amount
from tape.core.claim import RUN_LEASE, WORK_LEASE
from tape.core.effect import Compensation, EffectSpec, EffectStatus
from tape.core.errors import Conflict, RunClosed, StaleClaim
from tape.core.obligation import ObligationStatus
from tape.core.run_state import ACTIVE, ENDINGS, FINAL, RunState, RunStatus
from tape.runs import budgets, compensation, effects, gates, lifecycle
from tape.runs.compensation import OBLIGATIONS
from tape.runs.effects import EFFECTS
from tape.runs.gates import GATES
from tape.runs.ledger import Transition
from tape.runs.lifecycle import RUNS
from tests.unit.runs.memory_ledgers import MemoryLedgers

CAP = 100
TOOLS = st.sampled_from(["sweep", "hedge", "post"])
OWNERS = st.sampled_from(["w1", "w2", "w3"])
BACK = st.sampled_from([0, 0, 0, 1, 2])  # which worker calls: the newest one, or an earlier one
OUTCOMES = st.sampled_from([EffectStatus.CONFIRMED, EffectStatus.FAILED, EffectStatus.UNKNOWN])
UNDOING = ENDINGS - {RunStatus.TERMINAL}

T = TypeVar("T")


class RunMachine(RuleBasedStateMachine):
    """Workers that take, lose and retake a run, and record decisions, effects, waits and spending."""

    @initialize()
    def begin(self) -> None:
        self.ledgers = MemoryLedgers()
        self.run_id = self.ledgers.begin("w1").run_id
        self.ledgers.write(budgets.cap(self.ledgers.snapshot, self.run_id, None, CAP))
        self.status, self.owner, self.attempt = RunStatus.RUNNING, "w1", 1
        self.expires_ms = self.ledgers.now_ms + RUN_LEASE // timedelta(milliseconds=1)
        self.effects: dict[str, EffectStatus] = {}
        self.owed: list[str] = []
        self.holder: int | None = None
        self.met: set[str] = set()
        self.sent, self.is_waiting = 0, False
        self.reserved: dict[str, int] = {}
        self.spent = 0
        self.expected = Counter({"run": 1, "budget": 1})

    @property
    def run(self) -> RunState:
        return lifecycle.find(self.ledgers.snapshot, self.run_id)

    def fenced(self, back: int, decide: Callable[[int], Transition[T]]) -> T | None:
        """The result for a worker of this or an earlier attempt; a stale one changes nothing."""
        fence = max(self.attempt - back, 0)
        before = dict(self.ledgers.cells), len(self.ledgers.events)
        try:
            return self.ledgers.write(decide(fence))
        except StaleClaim:
            assert fence != self.attempt
        except RunClosed:
            assert self.status not in ACTIVE
        except Conflict:
            pass  # it contradicts what was recorded, and changes nothing either
        assert (dict(self.ledgers.cells), len(self.ledgers.events)) == before
        return None

    def renew(self) -> None:
        """Every call of the holder with its attempt renews its lease."""
        if self.owner:
            self.expires_ms = self.ledgers.now_ms + RUN_LEASE // timedelta(milliseconds=1)

    @rule(owner=OWNERS)
    def take(self, owner: str) -> None:
        is_free = self.owner in ("", owner) or self.ledgers.now_ms >= self.expires_ms
        taken = self.ledgers.write(lifecycle.take(self.ledgers.snapshot, self.run_id, owner, RUN_LEASE))
        assert taken.is_acquired is (is_free and self.status in ACTIVE)
        if taken.is_acquired:
            self.status, self.owner, self.attempt = RunStatus.RUNNING, owner, self.attempt + 1
            self.renew()
            self.expected["run"] += 1

    @rule(back=BACK)
    def heartbeat(self, back: int) -> None:
        beat = self.fenced(back, lambda fence: lifecycle.heartbeat(self.ledgers.snapshot, self.run_id, fence))
        if beat is not None and self.status in ACTIVE:
            assert back == 0
            self.renew()

    @rule(tool=TOOLS, back=BACK)
    def intend(self, tool: str, back: int) -> None:
        order = EffectSpec(run_id=self.run_id, tool=tool, compensation=Compensation(kind="undo"))
        begun = self.fenced(back, lambda fence: effects.begin(self.ledgers.snapshot, order, fence))
        if tool in self.effects:
            assert begun is not None and begun.status is self.effects[tool]
        elif begun is not None:
            assert back == 0 and self.status in ACTIVE
            self.effects[tool] = EffectStatus.PENDING
            self.expected["effect"] += 1
            self.renew()

    @rule(tool=TOOLS, status=OUTCOMES, back=BACK)
    def complete(self, tool: str, status: EffectStatus, back: int) -> None:
        if tool not in self.effects:
            return
        was_pending = self.effects[tool] is EffectStatus.PENDING
        place = self.run_id, f"{self.run_id}/decision--1/{tool}/0"
        done = self.fenced(back, lambda fence: effects.complete(self.ledgers.snapshot, place, status, fence=fence))
        if was_pending and done is not None:
            assert back == 0
            self.settle_effect(tool, status)
            self.renew()

    @rule(tool=TOOLS, status=st.sampled_from([EffectStatus.CONFIRMED, EffectStatus.FAILED]))
    def reconcile(self, tool: str, status: EffectStatus) -> None:
        if tool not in self.effects:
            return
        was_open = self.effects[tool] in (EffectStatus.PENDING, EffectStatus.UNKNOWN)
        place = self.run_id, f"{self.run_id}/decision--1/{tool}/0"
        if not was_open and self.effects[tool] is not status:
            with pytest.raises(Conflict):
                effects.reconcile(self.ledgers.snapshot, place, status)
            return
        self.ledgers.write(effects.reconcile(self.ledgers.snapshot, place, status))
        if was_open:
            self.settle_effect(tool, status)

    def settle_effect(self, tool: str, status: EffectStatus) -> None:
        self.effects[tool] = status
        self.expected["effect"] += 1
        if status is EffectStatus.CONFIRMED:
            self.owed.append(tool)
            self.expected["obligation"] += 1

    @rule(back=BACK)
    def wait(self, back: int) -> None:
        was_waiting = self.is_waiting and self.status is RunStatus.WAITING
        passage = self.fenced(
            back, lambda fence: gates.wait(self.ledgers.snapshot, self.run_id, "gate", self.sent, fence=fence)
        )
        if passage is not None and not was_waiting:
            assert back == 0 and not passage.is_delivered
            self.status, self.owner, self.is_waiting = RunStatus.WAITING, "", True
            self.expected.update(run=1, gate=1)

    @rule()
    def send(self) -> None:
        signal = self.ledgers.write(gates.send(self.ledgers.snapshot, self.run_id, "gate", f"n{self.sent}"))
        assert signal.is_accepted is (self.status in ACTIVE)
        if signal.is_accepted:
            self.sent += 1
            self.expected["gate"] += 1
        if signal.is_accepted and self.status is RunStatus.WAITING:
            self.status = RunStatus.RUNNABLE
            self.expected["run"] += 1
        self.is_waiting = self.is_waiting and not signal.is_accepted

    @rule(tokens=st.integers(0, 60))
    def reserve(self, tokens: int) -> None:
        name = f"r{len(self.ledgers.events)}"
        try:
            transition = budgets.reserve(self.ledgers.snapshot, self.run_id, name, Amount(tokens=tokens))
        except RunClosed:
            assert self.status not in ACTIVE
            return
        fits = self.spent + sum(self.reserved.values()) + tokens <= CAP
        assert self.ledgers.write(transition).is_admitted is fits
        if fits:
            self.reserved[name] = tokens
            self.expected["budget"] += 1

    @rule(share=st.floats(0, 1))
    def spend(self, share: float) -> None:
        if self.reserved:
            name, tokens = self.reserved.popitem()
            spent = int(tokens * share)
            self.ledgers.write(budgets.settle(self.ledgers.snapshot, self.run_id, name, Amount(tokens=spent)))
            self.spent += spent
            self.expected["budget"] += 1

    @rule(status=st.sampled_from(sorted(ENDINGS)), back=BACK)
    def end(self, status: RunStatus, back: int) -> None:
        was = self.status
        ended = self.fenced(back, lambda fence: lifecycle.end(self.ledgers.snapshot, self.run_id, status, fence=fence))
        if was in FINAL and was is not status:
            assert ended is None
        elif was is status:
            assert ended is not None and ended.status is was
        elif ended is not None:
            assert back == 0
            self.status, self.owner = status, ""
            self.expected["run"] += 1

    @rule()
    def claim_obligation(self) -> None:
        """A worker claims an obligation: only of a failed run, and only the newest."""
        if not self.owed or self.holder is not None:
            return
        number = max(self.number(tool) for tool in self.owed)
        claim = self.ledgers.write(compensation.claim(self.ledgers.snapshot, self.run_id, number, "d1", WORK_LEASE))
        assert claim.is_acquired is (self.status in UNDOING)
        if claim.is_acquired:
            self.holder = claim.obligation.claim.attempt
            self.expected["obligation"] += 1

    @rule()
    def meet_duty(self) -> None:
        if self.holder is None:
            return
        number = next(each.number for each in OBLIGATIONS.states(self.ledgers.cells) if each.claim.owner)
        done = ObligationStatus.COMPENSATED
        met = self.ledgers.write(
            compensation.resolve(self.ledgers.snapshot, self.run_id, number, done, "", self.holder)
        )
        tool = next(tool for tool in self.owed if self.number(tool) == met.number)
        self.owed.remove(tool)
        self.met.add(tool)
        self.holder = None
        self.expected["obligation"] += 1

    def number(self, tool: str) -> int:
        key = f"{self.run_id}/decision--1/{tool}/0"
        return next(each.number for each in OBLIGATIONS.states(self.ledgers.cells) if each.effect_key == key)

    @rule(seconds=st.sampled_from([1, 30, 120]))
    def time_passes(self, seconds: int) -> None:
        if self.holder is None:
            self.ledgers.passes(timedelta(seconds=seconds))

    @invariant()
    def the_run_is_as_the_model_has_it(self) -> None:
        run = self.run
        assert (run.status, run.claim.owner, run.claim.attempt) == (self.status, self.owner, self.attempt)
        assert RUNS.at(self.run_id) in self.ledgers.cells

    @invariant()
    def effects_and_what_is_owed_for_them_agree(self) -> None:
        found = {each.tool: each.status for each in EFFECTS.states(self.ledgers.cells)}
        assert found == self.effects
        confirmed = {tool for tool, status in found.items() if status is EffectStatus.CONFIRMED}
        assert confirmed == {*self.owed, *self.met} and not {*self.owed} & self.met

    @invariant()
    def the_gate_and_the_budget_agree(self) -> None:
        resolutions = [each.resolutions for each in GATES.states(self.ledgers.cells)]
        budget = budgets.budget_of(self.ledgers.snapshot, self.run_id)
        assert sum(map(len, resolutions)) == self.sent
        assert (budget.spent.tokens, budget.reserved.tokens) == (self.spent, sum(self.reserved.values()))

    @invariant()
    def there_are_as_many_entries_of_a_kind_as_changes(self) -> None:
        assert Counter(event.kind for event in self.ledgers.events) == self.expected


TestLife = RunMachine.TestCase
