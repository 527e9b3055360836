"""Every error says what to do, and survives pickling, notes and re-raising."""

import contextlib
import pickle
from collections.abc import Iterator

import pytest

from tape.core import errors
from tape.core.errors import TapeError
from tape.core.ids import GlobalSeq, RunId, Seq

R1 = RunId("r1")
EXAMPLES: list[TapeError] = [
    errors.UsageError("no"),
    errors.InvalidCursor("no"),
    errors.InvalidMaxQueued("no"),
    errors.JsonLimit("no"),
    errors.MissingStore("in the file 'nope.db'"),
    errors.ReservedSubject("/tape/run/x"),
    errors.Unsupported("CompactRun", "", "1.2"),
    errors.Unsupported("RecordDecision", "fence"),
    errors.NotFound("no"),
    errors.RunNotFound(R1),
    errors.Conflict("no"),
    errors.RunOpen(R1),
    errors.RunOpen(R1, "reap"),
    errors.ExpectedSeqConflict(R1, Seq(1), Seq(2)),
    errors.KeyConflict("k"),
    errors.VersionConflict("ledger", "key", 1, 2),
    errors.StaleClaim("no"),
    errors.RunClosed(R1),
    errors.NotReady("no"),
    errors.ScopeDenied(R1, "wire", "payments"),
    errors.ScopeDenied(R1, "wire", ""),
    errors.TooLarge("no"),
    errors.SseFramingError("no"),
    errors.LimitReached("no"),
    errors.SubscriberLimitExceeded(64),
    errors.BrokerOverflowError(R1, 3, 7),
    errors.BrokerOverflowError(None, 3, 7),
    errors.Corrupt("no", GlobalSeq(7)),
    errors.Unavailable("no", "unknown"),
]
ids = [type(error).__name__ for error in EXAMPLES]


def family(error: type[TapeError]) -> set[type[TapeError]]:
    return {error}.union(*(family(child) for child in error.__subclasses__()))


def test_every_class_has_an_example() -> None:
    ours = {error for error in family(TapeError) if error.__module__ == TapeError.__module__}

    assert {type(error) for error in EXAMPLES} == ours - {TapeError}


@pytest.mark.parametrize("error", EXAMPLES, ids=ids)
def test_an_error_survives_pickling(error: TapeError) -> None:
    error.add_note("seen on the way")

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error) and str(copy) == str(error)
    assert vars(copy) == vars(error) and copy.__notes__ == ["seen on the way"]


@pytest.mark.parametrize("error", EXAMPLES, ids=ids)
def test_an_error_passes_through_context_managers(error: TapeError) -> None:
    @contextlib.contextmanager
    def block() -> Iterator[None]:
        yield

    with pytest.raises(type(error)) as caught, contextlib.ExitStack() as stack, block():
        stack.callback(lambda: None)
        raise error

    assert caught.value is error


@pytest.mark.parametrize("error", EXAMPLES, ids=ids)
def test_a_message_is_a_phrase_without_a_full_stop(error: TapeError) -> None:
    message = str(error)

    assert message and not message.endswith(".") and message[0] == message[0].lower()


@pytest.mark.parametrize(
    ("error", "http", "grpc", "code", "exit_code"),
    [
        (errors.UsageError, 400, "INVALID_ARGUMENT", "usage_error", 2),
        (errors.InvalidCursor, 400, "INVALID_ARGUMENT", "invalid_cursor", 2),
        (errors.RunNotFound, 404, "NOT_FOUND", "run_not_found", 4),
        (errors.ExpectedSeqConflict, 409, "ABORTED", "expected_seq_conflict", 5),
        (errors.RunClosed, 409, "FAILED_PRECONDITION", "run_closed", 5),
        (errors.NotReady, 409, "FAILED_PRECONDITION", "not_ready", 5),
        (errors.ScopeDenied, 403, "PERMISSION_DENIED", "scope_denied", 3),
        (errors.TooLarge, 413, "RESOURCE_EXHAUSTED", "too_large", 2),
        (errors.SubscriberLimitExceeded, 429, "RESOURCE_EXHAUSTED", "subscriber_limit_exceeded", 6),
        (errors.BrokerOverflowError, 410, "OUT_OF_RANGE", "broker_overflow_error", 7),
        (errors.Corrupt, 500, "DATA_LOSS", "corrupt", 8),
        (errors.Unavailable, 503, "UNAVAILABLE", "unavailable", 9),
    ],
)
def test_an_error_has_one_meaning_on_every_surface(
    error: type[TapeError], http: int, grpc: str, code: str, exit_code: int
) -> None:
    example = next(example for example in EXAMPLES if type(example) is error)

    assert (example.http_status, example.grpc_status, example.code, example.exit_code) == (http, grpc, code, exit_code)


def test_errors_that_python_has_a_word_for_are_that_too() -> None:
    assert issubclass(errors.UsageError, ValueError)
    assert issubclass(errors.RunOpen, ValueError)
    assert issubclass(errors.RunNotFound, RuntimeError)
    assert issubclass(errors.RunClosed, RuntimeError)
