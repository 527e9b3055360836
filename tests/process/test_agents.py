"""`tape.run_agent` as a process: it runs functions until it gets a signal."""

import signal
from pathlib import Path

import pytest

import tape
from tests.deadlines import DEADLINE_S
from tests.process.processes import Processes


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, processes: Processes) -> str:
    if request.param == "sqlite":
        return processes.url
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_runs_functions_until_it_gets_a_signal(
    url: str, processes: Processes, tmp_path: Path, number: signal.Signals
) -> None:
    noted = tmp_path / "noted"
    agent = processes.start("agent", url, noted)
    with tape.connect(url) as client:
        run_id = client.runs.begin("app").run.run_id

        processes.wait(lambda: not client.runs.get(run_id).is_active, "the run has ended", DEADLINE_S)
        agent.send(number)
        agent.finish(DEADLINE_S)

        assert client.runs.get(run_id).detail_json == '"noted"'
    assert noted.read_text() == f"{run_id}/decision--1/note/0"


def test_a_run_is_resumed_here_and_now(url: str) -> None:
    with tape.connect(url) as client:
        run_id = client.runs.begin("app").run.run_id

    ended = tape.resume(run_id, lambda run: run.of.app, url)

    assert (ended.status, ended.detail_json) == (tape.RunStatus.TERMINAL, '"app"')
