"""Durable functions without a run."""

import pytest

import tape
from tape.core.effect import Semantics
from tape.core.errors import UsageError
from tape.core.run_state import Invocation, RunSpec
from tape.sdk.durable.compensators import compensators
from tape.sdk.durable.references import reference
from tape.sdk.durable.retries import Retries


def wired(amount: int) -> int:
    return amount


async def test_an_effect_outside_of_a_run_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tape\.run_agent"):
        await tape.effect()(wired)(1)


def test_a_gate_outside_of_a_run_is_refused_in_a_plain_program_too() -> None:
    with pytest.raises(UsageError, match=r"tape\.run_agent"):
        tape.gate("approval")


def test_what_could_be_done_twice_by_mistake_cannot_be_declared() -> None:
    with pytest.raises(UsageError, match="requires dispatch mode OUTBOX"):
        tape.effect(semantics=Semantics.NON_IDEMPOTENT)(wired)
    with pytest.raises(UsageError, match="requires a connector"):
        tape.effect(business_key="k")(wired)


def test_an_effect_without_its_parentheses_is_refused() -> None:
    bare = tape.effect(wired)

    with pytest.raises(UsageError, match=r"@tape\.effect\(\)"):
        bare(7)  # type: ignore[arg-type]


def test_a_compensator_is_registered_without_what_decorators_made_of_it() -> None:
    decorated = tape.effect()(wired)

    tape.effect(compensate=decorated)(wired)

    assert compensators.known()[f"{__name__}:wired"] is wired


def test_a_compensator_may_have_a_name_of_its_own() -> None:
    assert tape.compensator("refund")(wired) is wired

    assert compensators.known()["refund"] is wired


def test_a_function_within_another_has_no_name_outside() -> None:
    with pytest.raises(UsageError, match="top of a module"):
        reference(lambda: None)


@pytest.mark.parametrize("attempts", [0, -1, 1.5])
def test_a_policy_has_at_least_one_attempt(attempts: int) -> None:
    with pytest.raises(UsageError):
        Retries(attempts=attempts)


def test_labels_of_tape_s_own_are_refused() -> None:
    with pytest.raises(UsageError, match="belong to Tape"):
        RunSpec(of=Invocation(app="a"), labels={"tape.effects": "live"})
