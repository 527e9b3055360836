"""`tape.run_agent` as a process: it takes runs as they come, and leaves when it is told."""

import signal
from pathlib import Path

import pytest

import tape
from tests.patience import PATIENCE_S
from tests.process.crew import Crew


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, crew: Crew) -> str:
    if request.param == "sqlite":
        return crew.url
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_an_agent_takes_runs_as_they_come_and_leaves_when_it_is_told(
    url: str, crew: Crew, tmp_path: Path, told: signal.Signals
) -> None:
    noted = tmp_path / "noted"
    agent = crew.start("agent", url, noted)
    with tape.connect(url) as client:
        run_id = client.runs.begin("app").run.run_id

        crew.wait(lambda: not client.runs.find(run_id).is_active, "the run has ended", PATIENCE_S)
        agent.tell(told)
        agent.finish(PATIENCE_S)

        assert client.runs.find(run_id).detail_json == '"noted"'
    assert noted.read_text() == f"{run_id}/decision--1/note/0"


def test_a_run_is_resumed_here_and_now(url: str) -> None:
    with tape.connect(url) as client:
        run_id = client.runs.begin("app").run.run_id

    ended = tape.resume(run_id, lambda run: run.of.app, url)

    assert (ended.status, ended.detail_json) == (tape.RunStatus.TERMINAL, '"app"')
