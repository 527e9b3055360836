"""Every operation is defined once, and carried and handled wherever it can be called."""

from dataclasses import fields
from functools import partial
from typing import Any

import pytest

from tape.core.errors import UsageError
from tape.operations.catalogue import OPERATIONS
from tape.operations.effects import ListEffectsToDispatch
from tape.operations.gates import ListDueTimers, SendSignal
from tape.operations.handlers import handlers_of
from tape.operations.obligations import ListUnresolvedObligations
from tape.operations.operation import Access, Operation, Repeat
from tape.operations.runs import FindNewestRun, ListRunsToRecover
from tape.runs.budgets import Budgets
from tape.runs.decisions import Decisions
from tape.runs.dispatch import Dispatch
from tape.runs.effects import Effects
from tape.runs.gates import Gates
from tape.runs.obligations import Obligations
from tape.runs.runs import Runs
from tape.runs.sessions import Sessions
from tape.runs.timers import Timers
from tape.runs.values import Values
from tape.wire.procedures import BY_OPERATION

LEDGERS = (Runs, Decisions, Effects, Dispatch, Obligations, Gates, Timers, Budgets, Values, Sessions)
by_name = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)


def test_an_operation_has_one_name_and_one_request_type() -> None:
    assert len({each.name for each in OPERATIONS}) == len({each.request for each in OPERATIONS}) == len(OPERATIONS)


def test_every_operation_has_one_handler() -> None:
    store: Any = None
    handled = [request for ledger in LEDGERS for request, _ in handlers_of(ledger(store))]

    assert sorted(each.__name__ for each in handled) == sorted(each.request.__name__ for each in OPERATIONS)


def test_every_operation_is_carried_by_a_procedure() -> None:
    assert set(BY_OPERATION) == {each.request for each in OPERATIONS}


@by_name
def test_an_operation_says_what_it_does_and_what_it_returns(operation: Operation) -> None:
    assert operation.summary.endswith((".", ";")) and operation.result is not None
    kind: Any = operation.request
    assert all(each.kw_only for each in fields(kind)) and kind.__dataclass_params__.frozen


@by_name
def test_what_only_reads_may_be_repeated(operation: Operation) -> None:
    assert (operation.access is Access.READ) == (operation.repeat is Repeat.SAFE)


@pytest.mark.parametrize("app", ["ü", "a/b", "*", "x" * 129])
@pytest.mark.parametrize("request_type", [ListDueTimers, ListUnresolvedObligations, ListEffectsToDispatch])
def test_a_list_for_an_app_that_cannot_have_this_name_is_refused(request_type: Any, app: str) -> None:
    with pytest.raises(UsageError, match="an app has a name"):
        request_type(app=app)


@pytest.mark.parametrize("limit", [0, -1, 10_001, True, 1.0])
def test_a_limit_is_bounded(limit: Any) -> None:
    with pytest.raises(UsageError, match="a limit is 1 to 10,000"):
        ListDueTimers(limit=limit)


@pytest.mark.parametrize("name", ["my app", "ü", "a/b"])
def test_a_run_may_have_an_app_of_any_name(name: str) -> None:
    assert ListRunsToRecover(app=name).app == FindNewestRun(app=name, user="", session="").app == name


@pytest.mark.parametrize("field", ["app", "user", "session"])
@pytest.mark.parametrize("request_type", [FindNewestRun, partial(SendSignal, gate="g")])
def test_the_names_of_a_session_are_printable(request_type: Any, field: str) -> None:
    with pytest.raises(UsageError, match="printable"):
        request_type(**{"app": "a", "user": "u", "session": "s", field: "\0"})
