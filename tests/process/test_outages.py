"""Long-running commands over a Postgres that is killed, stopped or not up yet: they wait and recover."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from anyio import to_thread

from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.server import clean_environment
from tests.servers import forked
from tests.servers.databases import execute
from tests.servers.faults import Trouble, WaitResult, fault_proxy, in_turn
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

LOST = WaitResult(to_server=Trouble(ends_after=0))
PLACE = f"127.0.0.1:{free_port()}"
HANDLERS = """
import pathlib, tape

@tape.on("/orders/*", reaction_id="test.count")
def count(order):
    with pathlib.Path("handled").open("a") as file:
        file.write(f"{order.payload}\\n")
"""


class Command:
    """A running `tape` whose stdout and stderr are files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._stderr = folder / "stderr"
        with self._stderr.open("ab") as stderr, (folder / "stdout").open("ab") as stdout:
            self._process = forked.start(
                "tape.cli.main", arguments, folder=folder, output=stdout.fileno(), errors=stderr.fileno(),
                environment={**clean_environment(), "TAPE_DATA": str(folder)},
            )  # fmt: skip

    @property
    def stderr(self) -> str:
        return self._stderr.read_text()

    def logged(self, event: str, component: str) -> int:
        lines = [json.loads(line) for line in self.stderr.splitlines() if line.startswith("{")]
        return sum((line.get("event"), line.get("component")) == (event, component) for line in lines)

    def waits(self, is_so: Callable[[], bool], what: str) -> None:
        """Until something is so, which it never is once the command has ended."""
        until(lambda: self._process.poll() is not None or is_so(), what)
        assert self._process.poll() is None, self.stderr

    def end(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(DEADLINE_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    with ExitStack() as stack:

        def begin(*arguments: str) -> Command:
            command = Command(tmp_path, *arguments)
            stack.callback(command.kill)
            return command

        yield begin


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    with postgres_server.database() as url:
        yield url


def tape(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return forked.run("tape.cli.main", arguments, folder=folder, environment=clean_environment())


def publish(url: str, folder: Path, number: int) -> None:
    result = tape(
        "--store", url, "publish", "r1", str(number), "--subject", f"/orders/{number}", "--open", folder=folder
    )
    assert result.returncode == 0, result.stderr


def answers(place: str) -> bool:
    try:
        return httpx.get(f"http://{place}/ready", trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def test_serve_waits_for_a_postgres_that_is_not_up_yet_and_goes_on_after_it_was_killed(
    postgres_server: PostgresServer, url: str, start: Callable[..., Command]
) -> None:
    place = f"127.0.0.1:{free_port()}"
    postgres_server.kill_hard()
    try:
        command = start("serve", "--store", url, "--http", place)
        command.waits(lambda: command.logged("store.unavailable", "serve") > 0, "it logs that the store is unavailable")
    finally:
        postgres_server.restart()
    command.waits(lambda: answers(place), "it serves")
    postgres_server.kill_hard()
    postgres_server.restart()
    command.waits(lambda: answers(place), "it serves again")

    assert command.logged("store.unavailable", "serve") == command.logged("store.recovered", "serve") == 1
    assert command.end() in (0, 128 + signal.SIGTERM)


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("command", [["serve"], ["work", "handlers"]], ids=["serve", "work"])
async def test_a_command_whose_postgres_is_lost_while_it_starts_waits_for_it(
    postgres_server: PostgresServer, url: str, start: Callable[..., Command], tmp_path: Path,
    command: list[str], first: int,
) -> None:  # fmt: skip
    (tmp_path / "handlers.py").write_text(HANDLERS)
    plan = in_turn(*[WaitResult()] * first, *[LOST] * 2)  # a statement is tried twice
    publish(url, tmp_path, 1)

    async with fault_proxy(postgres_server.port, plan) as proxy:
        store = url.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        started = start(*command, "--store", store, *(["--http", PLACE] if command == ["serve"] else []))
        is_up = (lambda: answers(PLACE)) if command == ["serve"] else lambda: "dispatcher.started" in started.stderr
        await to_thread.run_sync(started.waits, is_up, "it is up")
        await to_thread.run_sync(started.waits, lambda: proxy.connections > first, "it connects")
        started.kill()


def test_work_waits_for_a_postgres_that_is_not_up_yet_and_goes_on_after_it_was_killed(
    postgres_server: PostgresServer, url: str, start: Callable[..., Command], tmp_path: Path
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    handled = tmp_path / "handled"
    handled.touch()
    postgres_server.kill_hard()
    try:
        command = start("work", "handlers", "--store", url)
        command.waits(lambda: command.logged("store.unavailable", "work") > 0, "it logs that the store is unavailable")
    finally:
        postgres_server.restart()
    command.waits(lambda: "dispatcher.started" in command.stderr, "it works")
    publish(url, tmp_path, 1)
    command.waits(lambda: "1\n" in handled.read_text(), "the first is handled")
    postgres_server.kill_hard()
    postgres_server.restart()
    publish(url, tmp_path, 2)

    command.waits(lambda: "2\n" in handled.read_text(), "the second is handled")
    assert command.logged("store.unavailable", "work") == 1
    assert command.end() in (0, 128 + signal.SIGTERM)


def test_a_sync_that_follows_goes_on_after_postgres_was_killed(
    postgres_server: PostgresServer, url: str, start: Callable[..., Command], tmp_path: Path
) -> None:
    def has_synced(count: int) -> bool:
        return (tmp_path / "stdout").read_text().count("\n") >= count

    publish(url, tmp_path, 1)
    postgres_server.kill_hard()
    try:
        command = start("lake", "sync", "--follow", "--json", "--store", url, "--lake", str(tmp_path / "lake"))
        command.waits(
            lambda: command.logged("store.unavailable", "lake sync") > 0, "it logs that the store is unavailable"
        )
    finally:
        postgres_server.restart()
    command.waits(lambda: has_synced(1), "the first step is taken")
    postgres_server.kill_hard()
    command.waits(lambda: command.logged("store.unavailable", "lake sync") > 1, "it logs it again")
    postgres_server.restart()
    publish(url, tmp_path, 2)

    command.waits(lambda: has_synced(2), "the second step is taken")


@pytest.mark.parametrize("command", [["serve"], ["work", "handlers"], ["lake", "sync", "--follow"]])
@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (lambda url: url.rpartition("/")[0] + "/nothing_here", "does not exist"),
        (lambda url: url.replace("//tape@", "//stranger@"), "does not exist"),
        (lambda url: url.replace("postgresql:", "postgrsql:"), "postgresql://"),
        (lambda url: url.replace("127.0.0.1:", "127.0.0.1:x"), "cannot be read"),
        (lambda url: f"{url}?sslmode=sometimes", "sslmode"),
    ],
    ids=["unknown database", "unknown role", "unknown scheme", "no port", "no such option"],
)
def test_a_permanent_error_is_one_sentence_at_once(
    url: str, tmp_path: Path, command: list[str], wrong: Callable[[str], str], reason: str
) -> None:
    (tmp_path / "handlers.py").write_text(HANDLERS)

    result = tape("--store", wrong(url), *command, folder=tmp_path)

    assert (result.returncode, result.stdout) == (2, "")
    assert reason in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [["tail", "--no-follow"], ["tail", "--run", "r1"], ["journal", "verify"]])
def test_an_unexpected_sql_error_is_one_sentence(
    url: str, postgres_server: PostgresServer, tmp_path: Path, command: list[str]
) -> None:
    publish(url, tmp_path, 1)
    execute(url, "ALTER TABLE tape_journal RENAME TO gone")

    result = tape("--store", url, *command, folder=tmp_path)

    assert result.returncode == 1
    assert "tape_journal" in result.stderr and "SQLSTATE 42P01" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "ExceptionGroup" not in result.stderr and "PYTHONDEVMODE" not in result.stderr
