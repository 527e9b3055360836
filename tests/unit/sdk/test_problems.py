"""A server's problem is the error that it was on the other side."""

import json

import pytest

from tape.core.errors import (
    BrokerOverflowError,
    ExpectedSeqConflict,
    InvalidMaxQueued,
    LimitReached,
    NotFound,
    RunClosed,
    RunNotFound,
    SubscriberLimitExceeded,
    TapeError,
    Unavailable,
    UsageError,
    WriteOutcome,
)
from tape.sdk.problems import raised_from
from tape.server.http.problem import Problem


def error(status: int, **problem: object) -> TapeError:
    return raised_from(status, json.dumps(problem).encode(), {"run_id": "r1"})


def test_an_error_with_only_a_message_has_the_server_s() -> None:
    raised = error(400, code="invalid_max_queued", detail="maxQueued must be 16 to 2,048, not 15")

    assert type(raised) is InvalidMaxQueued and str(raised) == "maxQueued must be 16 to 2,048, not 15"


def test_an_error_made_of_facts_has_them() -> None:
    raised = error(409, code="expected_seq_conflict", expected=3, actual=5)

    assert isinstance(raised, ExpectedSeqConflict) and (raised.run_id, raised.actual) == ("r1", 5)


def test_a_fact_of_the_server_wins_over_a_known_one() -> None:
    raised = error(409, code="run_closed", run_id="r2")

    assert isinstance(raised, RunClosed) and raised.run_id == "r2"


@pytest.mark.parametrize(
    ("status", "code", "family"),
    [
        (404, "run_not_found", RunNotFound),
        (410, "broker_overflow_error", TapeError),
        (429, "subscriber_limit_exceeded", LimitReached),
    ],
)
def test_an_error_whose_facts_are_missing_is_its_family(status: int, code: str, family: type[TapeError]) -> None:
    raised = error(status, code=code, detail="no")

    assert type(raised) is family and not isinstance(raised, BrokerOverflowError | SubscriberLimitExceeded)


@pytest.mark.parametrize(("status", "family"), [(400, UsageError), (403, UsageError), (404, NotFound)])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"code":7}', b'{"code":"from_the_future"}'])
def test_an_answer_nobody_knows_is_the_family_of_its_status(status: int, family: type[TapeError], body: bytes) -> None:
    raised = raised_from(status, body, {})

    assert type(raised) is family and str(status) in str(raised)


@pytest.mark.parametrize("outcome", ["nothing", "unknown"])
def test_an_outage_of_the_store_tells_its_outcome_once(outcome: WriteOutcome) -> None:
    problem = Problem.of(Unavailable("disk of /data is full", outcome))

    raised = raised_from(problem.status, problem.body(), {})

    assert str(raised) == str(Unavailable("the store did not answer", outcome))
