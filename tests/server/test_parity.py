"""Every operation gives the same answer in this process, over gRPC, over HTTP and by a command."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from tape.operations.catalogue import OPERATIONS
from tape.operations.exceptions import EXCEPTIONS
from tests.server.conftest import Start
from tests.server.parity import CALLS, COMMANDS, HTTP, Answer, by_commands, by_http, by_library, differing, fill_outbox
from tests.servers.databases import Databases

MakeStore = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Makes stores that are empty but for an outbox."""
    numbers = iter(range(100))
    if request.param == "sqlite":
        yield lambda: with_outbox(f"sqlite:///{tmp_path}/{next(numbers)}.db")
        return
    databases: Databases = request.getfixturevalue("postgres_databases")
    with ExitStack() as stack:
        yield lambda: with_outbox(stack.enter_context(databases.database()))


def with_outbox(url: str) -> str:
    anyio.run(fill_outbox, url)
    return url


@pytest.fixture
def expected(make_store: MakeStore) -> list[Answer]:
    """The answers of the library in this process."""
    return anyio.run(by_library, make_store())


def test_every_operation_is_called() -> None:
    assert {name for name, _ in CALLS} == {each.name for each in OPERATIONS}


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
