"""Problems: a code and a trace id for everything, and nothing about the inside for anybody."""

import json

import pytest

from tape.core.errors import (
    Corrupt,
    ExpectedSeqConflict,
    LimitReached,
    SubscriberLimitExceeded,
    Unavailable,
    UsageError,
)
from tape.core.ids import RunId, Seq
from tape.core.server_unavailable import ServerUnavailable
from tape.server.http.errors import MethodNotAllowed
from tape.server.http.problem import Problem

SECRET = "postgresql://tape:hunter2@db/x: SELECT * FROM tape_journal in /srv/tape.db"
ERRORS = [Unavailable(SECRET), Unavailable(SECRET, "unknown"), Corrupt(SECRET), KeyError(SECRET)]


@pytest.mark.parametrize("error", ERRORS)
def test_a_stores_error_is_not_in_the_answer(error: Exception) -> None:
    body = Problem.of(error).body().decode()

    assert not any(word in body for word in ("hunter2", "SELECT", "/srv", "KeyError", "Traceback"))


def test_an_unexpected_error_is_internal() -> None:
    problem = Problem.of(ZeroDivisionError("x"), "a" * 32)

    assert (problem.status, problem.code, problem.trace_id) == (500, "internal", "a" * 32)


def test_a_hostile_value_is_quoted_escaped_and_cut() -> None:
    problem = Problem.of(UsageError("no \x1b[2J \u202e \u200b \r\n" + "x" * 9000))

    assert problem.detail.isascii() and problem.detail.isprintable() and len(problem.detail) <= 300


def test_a_limit_problem_has_retry_after() -> None:
    full, busy, down = map(Problem.of, (SubscriberLimitExceeded(64), LimitReached("x"), Unavailable("x")))

    assert (full.headers["retry-after"], busy.headers["retry-after"], down.headers["retry-after"]) == ("5", "1", "1")
    assert json.loads(full.body())["limit"] == 64


def test_a_conflict_has_the_runs_head() -> None:
    body = json.loads(Problem.of(ExpectedSeqConflict(RunId("r"), Seq(3), Seq(5))).body())

    assert (body["status"], body["code"], body["expected"], body["actual"]) == (409, "expected_seq_conflict", 3, 5)


def test_a_wrong_method_is_answered_with_allow() -> None:
    assert Problem.of(MethodNotAllowed(["GET"])).headers == {"allow": "GET"}


def test_the_servers_own_refusals_keep_their_text() -> None:
    body = json.loads(Problem.of(ServerUnavailable("the server is draining")).body())

    assert (body["status"], body["code"], body["reason"]) == (503, "unavailable", "the server is draining")
