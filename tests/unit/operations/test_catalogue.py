"""Every operation is defined once, and carried and handled wherever it can be called."""

from dataclasses import fields
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, get_origin

import click
import msgspec
import pytest

from tape.core.errors import UsageError
from tape.core.page import Page
from tape.matcher.reactions import Reactions
from tape.matcher.tasks import Tasks
from tape.operations.catalogue import ALL, OPERATIONS
from tape.operations.effects import ListEffectsToDispatch
from tape.operations.exceptions import NO_OPERATIONS, OTHER_FORMS
from tape.operations.fields import MEANINGS
from tape.operations.gates import ListDueTimers, SendSignal
from tape.operations.handlers import handlers_of
from tape.operations.journal_runs import ListEvents
from tape.operations.obligations import ListUnresolvedObligations
from tape.operations.operation import Access, Operation, PageRequest, Repeat, Shape
from tape.operations.runs import FindNewestRun, ListRunsToRecover
from tape.operations.surfaces import surfaces_of
from tape.outbox.operations import OutboxOperations
from tape.runs.budgets import Budgets
from tape.runs.decisions import Decisions
from tape.runs.dispatch import Dispatch
from tape.runs.effects import Effects
from tape.runs.gates import Gates
from tape.runs.journal_runs import JournalRuns
from tape.runs.obligations import Obligations
from tape.runs.run_events import RunEvents
from tape.runs.runs import Runs
from tape.runs.sessions import Sessions
from tape.runs.timers import Timers
from tape.runs.values import Values
from tape.sdk.nouns.node import AsyncNode
from tape.server.routes.table import ROUTES
from tape.wire.operation_json import example_of, read_text, request_of, request_type
from tape.wire.procedure import METHODS
from tape.wire.procedures import BY_OPERATION
from tape.wire.result_json import result_type
from tools.docs.reference import commands

LEDGERS = (Runs, Decisions, Effects, Dispatch, Obligations, Gates, Timers, Budgets, Values, Sessions)
NO_LEDGERS: Any = SimpleNamespace(events=None, call=None)
NODE = AsyncNode(NO_LEDGERS)
COMMANDS = {path for path, _, _ in commands()}
by_name = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
all_by_name = pytest.mark.parametrize("operation", ALL, ids=lambda each: each.name)


def test_an_operation_has_one_name_and_one_request_type() -> None:
    assert len({each.name for each in ALL}) == len({each.request for each in ALL}) == len(ALL)


def test_every_operation_has_one_handler() -> None:
    store: Any = None
    work = (Reactions(store, store), Tasks(store, store), OutboxOperations(""))
    own = (JournalRuns(store, store, store), RunEvents(store, store), *work)
    owners = [*(ledger(store) for ledger in LEDGERS), *own]
    handled = [request for owner in owners for request, _ in handlers_of(owner)]

    assert sorted(each.__name__ for each in handled) == sorted(each.request.__name__ for each in OPERATIONS)


def test_every_operation_is_carried_by_a_procedure() -> None:
    assert set(BY_OPERATION) == {each.request for each in OPERATIONS if surfaces_of(each).grpc is not None}


@all_by_name
def test_an_operation_says_what_it_does_and_what_it_returns(operation: Operation) -> None:
    assert operation.summary.endswith((".", ";")) and operation.result is not None
    kind: Any = operation.request
    assert all(each.kw_only for each in fields(kind)) and kind.__dataclass_params__.frozen


@by_name
def test_a_list_in_pages_takes_a_cursor_and_returns_the_next(operation: Operation) -> None:
    is_page = issubclass(operation.request, PageRequest)
    if operation.request is ListEvents:  # seqs are its cursors: a page names the next one, and the last
        return

    assert is_page == (operation.shape is Shape.PAGE) == (get_origin(operation.result) is Page)
    assert is_page == ("next_cursor" in result_type(operation).__struct_fields__)  # work that is due has no next page


@all_by_name
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


@by_name
def test_every_field_is_explained_and_every_required_one_has_an_example(operation: Operation) -> None:
    found = msgspec.structs.fields(request_type(operation))

    assert [each.name for each in found if each.name not in MEANINGS] == []
    assert isinstance(request_of(operation, read_text(operation, example_of(operation))), operation.request)


def test_every_meaning_is_of_a_field() -> None:
    known = {each.name for operation in OPERATIONS for each in msgspec.structs.fields(request_type(operation))}

    assert {name.rpartition(".")[2] for name in MEANINGS} == known


@all_by_name
def test_an_operation_is_on_every_surface_or_there_is_a_reason(operation: Operation) -> None:
    found = surfaces_of(operation)
    routes = {(route.method, route.path) for route in ROUTES}

    assert found.http is None or tuple(found.http) in routes
    assert found.grpc is None or found.grpc in METHODS
    assert found.grpc is None or found.grpc in METHODS
    assert operation.request not in BY_OPERATION or found.grpc == BY_OPERATION[operation.request].name
    assert found.sdk is None or callable(attrgetter(found.sdk)(NODE))
    assert found.cli is None or tuple(found.cli.split()) in COMMANDS


def test_what_can_be_called_is_an_operation_or_there_is_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    found = [surfaces_of(each) for each in ALL]
    operations = {f"{each.http.method} {each.http.path}" for each in found if each.http}
    operations |= {name for each in found for name in (each.grpc, each.cli) if name}
    leaves = {" ".join(path) for path, command, _ in commands() if not isinstance(command, click.Group)}
    callable_names = {f"{route.method} {route.path}" for route in ROUTES} | {*METHODS} | leaves

    for name, reason in sorted(NO_OPERATIONS.items()):
        print(f"{name} is no operation: {reason}")

    assert callable_names - operations == {*OTHER_FORMS, *NO_OPERATIONS}
    assert {*OTHER_FORMS.values()} <= {each.name for each in ALL}
    assert all(reason.endswith(".") for reason in NO_OPERATIONS.values())
