"""Every operation gives the same answer in this process, over gRPC, over HTTP and by a command."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from tape.operations.catalogue import OPERATIONS
from tape.operations.exceptions import EXCEPTIONS
from tape.sdk.nouns.node import AsyncNode
from tests.server.conftest import Start
from tests.server.facades import UNTAKEN, untaken
from tests.server.parity import (
    COMMANDS,
    HTTP,
    Answer,
    by_commands,
    by_http,
    by_library,
    differing,
    fill_outbox,
    fill_tasks,
)
from tests.server.parity_calls import APP, CALLS

MakeStore = Callable[[], str]


@pytest.fixture
def make_store(make_empty: MakeStore) -> MakeStore:
    """Makes stores that are empty but for an outbox and five pending tasks."""
    return lambda: filled(make_empty())


def filled(url: str) -> str:
    anyio.run(fill_tasks, url)
    anyio.run(fill_outbox, url)
    return url


@pytest.fixture(autouse=True)
def app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPE_APP", APP["app"])


@pytest.fixture
def expected(make_store: MakeStore) -> list[Answer]:
    """The answers of the library in this process."""
    return anyio.run(by_library, make_store())


def test_every_operation_is_called() -> None:
    assert {name for name, _ in CALLS} == {each.name for each in OPERATIONS}


def test_a_method_of_the_sdk_takes_every_field_of_its_operation_or_there_is_a_reason() -> None:
    ledgers: Any = SimpleNamespace(events=None, call=None)
    found = {each.name: untaken(each, AsyncNode(ledgers)) for each in OPERATIONS}

    assert {name: names for name, names in found.items() if names} == {name: each[0] for name, each in UNTAKEN.items()}


def test_what_is_missing_has_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    for (name, surface), reason in sorted(EXCEPTIONS.items()):
        print(f"{name} is not on {surface}: {reason}")

    assert all(reason.endswith(".") for reason in EXCEPTIONS.values())


def test_grpc_answers_as_the_library(expected: list[Answer], make_store: MakeStore, start: Start) -> None:
    server = start(make_store())

    assert differing(expected, anyio.run(by_library, server.rpc), {}) == []


def test_http_answers_as_the_library(expected: list[Answer], make_store: MakeStore, start: Start) -> None:
    with start(make_store()).client() as client:
        assert differing(expected, by_http(client), HTTP) == []


def test_commands_answer_as_the_library(
    expected: list[Answer], make_store: MakeStore, capsys: pytest.CaptureFixture[str]
) -> None:
    assert differing(expected, by_commands(make_store(), capsys), COMMANDS) == []
