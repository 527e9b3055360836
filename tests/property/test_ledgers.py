"""Ledgers against simple models, with operations in any order."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from tape.core.budget import Amount
from tape.core.claim import WORK_LEASE
from tape.core.effect import (
    Compensation,
    DispatchMode,
    Effect,
    EffectSpec,
    EffectStatus,
    Observation,
    Resolution,
    Semantics,
)
from tape.core.errors import Conflict, StaleClaim
from tape.core.obligation import Obligation, ObligationStatus
from tape.core.run_state import ENDINGS, FINAL, RunState, RunStatus
from tape.runs import budgets, compensation, dispatch, effects, gates, lifecycle
from tape.runs.compensation import OBLIGATIONS
from tape.runs.effects import EFFECTS
from tape.runs.lifecycle import DEBTS, RUNS
from tests.unit.runs.memory_ledgers import MemoryLedgers

OWNERS = st.sampled_from(["d1", "d2", "d3"])
AMOUNTS = st.integers(0, 60)
CAP = 100


class BudgetMachine(RuleBasedStateMachine):
    """A budget against sums."""

    held = Bundle("held")

    @initialize()
    def begin(self) -> None:
        self.ledgers = MemoryLedgers()
        self.run_id = self.ledgers.begin().run_id
        self.ledgers.write(budgets.cap(self.ledgers.snapshot, self.run_id, None, CAP))
        self.reserved: dict[str, int] = {}
        self.spent = 0
        self.names = 0

    @rule(target=held, tokens=AMOUNTS)
    def reserve(self, tokens: int) -> str:
        self.names += 1
        name = f"r{self.names}"
        admission = self.ledgers.write(budgets.reserve(self.ledgers.snapshot, self.run_id, name, Amount(tokens=tokens)))
        fits = self.spent + sum(self.reserved.values()) + tokens <= CAP
        assert admission.is_admitted is fits and bool(admission.reason) is not fits
        if fits:
            self.reserved[name] = tokens
        return name

    @rule(name=held)
    def reserve_again(self, name: str) -> None:
        if name in self.reserved:
            asked = Amount(tokens=self.reserved[name])
            assert self.ledgers.write(budgets.reserve(self.ledgers.snapshot, self.run_id, name, asked)).is_admitted
            with pytest.raises(Conflict):
                budgets.reserve(self.ledgers.snapshot, self.run_id, name, Amount(tokens=CAP + 1))

    @rule(name=held, share=st.floats(0, 1))
    def settle(self, name: str, share: float) -> None:
        if name in self.reserved:
            spent = int(self.reserved.pop(name) * share)
            self.ledgers.write(budgets.settle(self.ledgers.snapshot, self.run_id, name, Amount(tokens=spent)))
            self.spent += spent
            self.ledgers.write(budgets.settle(self.ledgers.snapshot, self.run_id, name, Amount(tokens=spent)))
            with pytest.raises(Conflict):
                budgets.settle(self.ledgers.snapshot, self.run_id, name, Amount(tokens=CAP + 1))

    @invariant()
    def adds_up(self) -> None:
        budget = budgets.budget_of(self.ledgers.snapshot, self.run_id)
        assert (budget.spent.tokens, budget.reserved.tokens) == (self.spent, sum(self.reserved.values()))
        assert self.spent + sum(self.reserved.values()) <= CAP


class EffectMachine(RuleBasedStateMachine):
    """Two effects in an outbox, with dispatchers that report, lose their lease and return late."""

    claims = Bundle("claims")

    @initialize(is_once=st.booleans(), is_owed=st.booleans())
    def begin(self, is_once: bool, is_owed: bool) -> None:
        self.ledgers = MemoryLedgers()
        self.run_id = self.ledgers.begin(scopes=("payments",)).run_id
        self.handed, self.excused = 0, 0
        self.outcome: EffectStatus | None = None
        self.order = EffectSpec(
            run_id=self.run_id,
            tool="wire",
            semantics=Semantics.NON_IDEMPOTENT if is_once else Semantics.IDEMPOTENT,
            dispatch_mode=DispatchMode.OUTBOX,
            scope="payments",
            compensation=Compensation(kind="undo") if is_owed else None,
        )
        self.place = self.run_id, self.order.idempotency_key
        self.ledgers.write(effects.begin(self.ledgers.snapshot, self.order))

    @property
    def effect(self) -> Effect:
        return effects.found(self.ledgers.snapshot, self.place)

    @rule()
    def begin_again(self) -> None:
        assert not effects.begin(self.ledgers.snapshot, self.order).cells

    @rule(target=claims, owner=OWNERS)
    def claim(self, owner: str) -> int:
        was_free = not self.effect.claim.is_live(self.ledgers.now_ms)
        claim = self.ledgers.write(dispatch.claim(self.ledgers.snapshot, self.place, owner, WORK_LEASE))
        self.handed += claim.is_acquired
        assert was_free or not claim.is_acquired
        return claim.effect.claim.attempt

    @rule(attempt=claims, is_retried=st.booleans())
    def report(self, attempt: int, is_retried: bool) -> None:
        is_held = self.effect.claim.owner and self.effect.claim.attempt == attempt
        later = self.ledgers.now_ms if is_retried else 0
        try:
            transition = dispatch.attempt(self.ledgers.snapshot, self.place, attempt, "no", later)
        except StaleClaim:
            assert not is_held
            return
        self.excused += bool(transition.cells and is_retried)
        self.ledgers.write(transition)

    @rule(status=st.sampled_from([EffectStatus.CONFIRMED, EffectStatus.FAILED, EffectStatus.UNKNOWN]))
    def complete(self, status: EffectStatus) -> None:
        with suppress(Conflict):  # what it contradicts stays, as the invariants below say
            self.ledgers.write(effects.complete(self.ledgers.snapshot, self.place, status))

    @rule(resolution=st.sampled_from(Resolution))
    def observe(self, resolution: Resolution) -> None:
        before, shows_nothing = self.effect, resolution in (Resolution.ABSENT, Resolution.STUCK)
        with suppress(Conflict):
            self.ledgers.write(dispatch.observe(self.ledgers.snapshot, self.place, Observation(resolution=resolution)))
        if resolution is Resolution.ABSENT and before.status is EffectStatus.UNKNOWN:
            self.excused += 1  # a check has shown that it was not done
        assert not before.claim.is_live(self.ledgers.now_ms) or not shows_nothing or self.effect == before

    @rule(resolution=st.sampled_from(Resolution))
    def observe_again(self, resolution: Resolution) -> None:
        with suppress(Conflict):
            self.observe(resolution)
            again = dispatch.observe(self.ledgers.snapshot, self.place, Observation(resolution=resolution))
            assert not again.cells and not again.events

    @rule(seconds=st.sampled_from([1, 59, 60]))
    def time_passes(self, seconds: int) -> None:
        self.ledgers.passes(timedelta(seconds=seconds))

    @rule(status=st.sampled_from(sorted(ENDINGS)))
    @precondition(lambda self: self.handed)
    def end(self, status: RunStatus) -> None:
        with suppress(Conflict):
            self.ledgers.end(self.run_id, status)

    @invariant()
    def what_cannot_be_repeated_is_handed_out_once(self) -> None:
        if self.effect.semantics is Semantics.NON_IDEMPOTENT:
            assert self.handed <= 1 + self.excused

    @invariant()
    def an_outcome_stays(self) -> None:
        if self.outcome is None and self.effect.is_settled:
            self.outcome = self.effect.status
        assert self.outcome in (None, self.effect.status)

    @invariant()
    def what_was_done_is_owed_and_what_was_not_is_not(self) -> None:
        is_owed = self.effect.status is EffectStatus.CONFIRMED and self.effect.compensation is not None
        assert len(list(OBLIGATIONS.states(self.ledgers.cells))) == is_owed

    @invariant()
    def it_is_listed_where_it_will_be_looked_for(self) -> None:
        cell = self.ledgers.cells[EFFECTS.at(effects.key_of(*self.place))]
        is_open = not self.effect.is_settled
        assert (cell.due_at_ms is not None) is is_open
        assert cell.status in ({"outbox", "in_flight", "unknown"} if is_open else {"confirmed", "failed"})


class ObligationMachine(RuleBasedStateMachine):
    """A run with obligations, before and after it fails, and workers that succeed, fail and lose their lease."""

    duties = Bundle("duties")

    @initialize(count=st.integers(1, 4))
    def begin(self, count: int) -> None:
        self.ledgers = MemoryLedgers()
        self.run_id = self.ledgers.begin().run_id
        self.met: set[int] = set()
        for _ in range(count):
            self.register()

    @property
    def status(self) -> RunStatus:
        return lifecycle.find(self.ledgers.snapshot, self.run_id).status

    @property
    def obligations(self) -> list[Obligation]:
        return list(OBLIGATIONS.states(self.ledgers.cells))

    @precondition(lambda self: len(self.obligations) < 6)
    @rule()
    def register(self) -> None:
        key = f"effect-{len(list(OBLIGATIONS.states(self.ledgers.cells)))}"
        how = Compensation(kind="undo", max_attempts=2)
        self.ledgers.write(compensation.register(self.ledgers.snapshot, self.run_id, key, how))

    @rule(target=duties, data=st.data(), owner=OWNERS)
    def claim(self, data: st.DataObject, owner: str) -> tuple[int, int]:
        number = data.draw(st.integers(1, len(self.obligations)))
        owed = [each for each in self.obligations if each.is_owed]
        claim = self.ledgers.write(compensation.claim(self.ledgers.snapshot, self.run_id, number, owner, WORK_LEASE))
        if claim.is_acquired:
            turn = max(owed, key=lambda each: each.number)
            assert self.status in ENDINGS - {RunStatus.TERMINAL}
            assert turn.number == number and turn.due_at_ms <= self.ledgers.now_ms
        return number, claim.obligation.claim.attempt

    @rule(duty=duties, is_met=st.booleans(), delay_s=st.sampled_from([0, 1, 60]))
    def end_duty(self, duty: tuple[int, int], is_met: bool, delay_s: int) -> None:
        number, attempt = duty
        before = compensation.numbered(self.ledgers.snapshot, self.run_id, number)
        later = self.ledgers.now_ms + delay_s * 1000 if delay_s else 0
        try:
            if is_met:
                status = ObligationStatus.COMPENSATED
                self.ledgers.write(
                    compensation.resolve(self.ledgers.snapshot, self.run_id, number, status, "", attempt)
                )
            else:
                self.ledgers.write(
                    compensation.attempt(self.ledgers.snapshot, self.run_id, number, attempt, "no", later)
                )
        except StaleClaim:
            assert not before.claim.owner or before.claim.attempt != attempt

    @rule(seconds=st.sampled_from([1, 59, 60]))
    def time_passes(self, seconds: int) -> None:
        self.ledgers.passes(timedelta(seconds=seconds))

    @rule(status=st.sampled_from(sorted(ENDINGS)))
    def end(self, status: RunStatus) -> None:
        before = self.status
        if before in FINAL and before is not status:
            with pytest.raises(Conflict):
                self.ledgers.end(self.run_id, status)
        else:
            assert self.ledgers.end(self.run_id, status).status is status

    @invariant()
    def debts_are_what_is_owed_and_listed_once_the_run_has_failed(self) -> None:
        debt, cell = DEBTS.find(self.ledgers.snapshot, self.run_id), self.ledgers.cells[DEBTS.at(self.run_id)]
        owed = [each for each in self.obligations if each.is_owed]
        assert debt is not None and (debt.count, debt.owed) == (len(self.obligations), len(owed))
        is_due = bool(owed) and self.status in ENDINGS - {RunStatus.TERMINAL}
        assert (cell.due_at_ms is not None) is is_due
        if cell.due_at_ms is not None:
            turn = max(owed, key=lambda each: each.number)
            assert cell.due_at_ms <= max(turn.due_at_ms, self.ledgers.now_ms)

    @invariant()
    def what_is_met_stays_met_and_what_is_leased_names_its_holder(self) -> None:
        now_met = {each.number for each in self.obligations if each.status is ObligationStatus.COMPENSATED}
        assert self.met <= now_met
        self.met = now_met
        for each in self.obligations:
            assert bool(each.claim.owner) is (each.status is ObligationStatus.COMMITTED)


class GateMachine(RuleBasedStateMachine):
    """A run that waits at a gate, is taken by workers, and gets signals."""

    @initialize()
    def begin(self) -> None:
        self.ledgers = MemoryLedgers()
        self.run_id = self.ledgers.begin().run_id
        self.sent: list[str] = []

    @property
    def run(self) -> RunState:
        return lifecycle.find(self.ledgers.snapshot, self.run_id)

    @rule(back=st.integers(0, 3))
    def wait(self, back: int) -> None:
        index = max(0, len(self.sent) - back)
        passage = self.ledgers.write(gates.wait(self.ledgers.snapshot, self.run_id, "gate", index))
        assert passage.resolution_json == (self.sent[index] if index < len(self.sent) else None)
        assert passage.is_delivered or self.run.status is RunStatus.WAITING

    @rule()
    def send(self) -> None:
        was_waiting = self.run.status is RunStatus.WAITING
        signal = self.ledgers.write(gates.send(self.ledgers.snapshot, self.run_id, "gate", f"n{len(self.sent)}"))
        self.sent.append(f"n{len(self.sent)}")
        assert (signal.run_status is RunStatus.RUNNABLE) is was_waiting
        assert self.run.status is not RunStatus.WAITING

    @rule(owner=OWNERS)
    def take(self, owner: str) -> None:
        was_free = self.run.claim.owner in ("", owner) or not self.run.claim.is_live(self.ledgers.now_ms)
        taken = self.ledgers.write(lifecycle.take(self.ledgers.snapshot, self.run_id, owner, WORK_LEASE))
        assert taken.is_acquired is was_free

    @rule(seconds=st.sampled_from([1, 60, 120]))
    def time_passes(self, seconds: int) -> None:
        self.ledgers.passes(timedelta(seconds=seconds))

    @invariant()
    def a_run_that_waits_is_held_by_nobody_and_a_free_one_is_offered(self) -> None:
        cell = self.ledgers.cells[RUNS.at(self.run_id)]
        words = {RunStatus.RUNNABLE: "ready", RunStatus.RUNNING: "leased", RunStatus.WAITING: "parked"}
        assert cell.status == words[self.run.status]
        assert bool(self.run.claim.owner) is (self.run.status is RunStatus.RUNNING)


TestBudget = BudgetMachine.TestCase
TestEffect = EffectMachine.TestCase
TestDuty = ObligationMachine.TestCase
TestGate = GateMachine.TestCase
