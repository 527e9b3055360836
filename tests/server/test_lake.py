"""`/lake`, through real sockets."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import httpx
import psutil
import pytest

from tape.lake.log import DeltaLog
from tests.lake.hostile_queries import HOSTILE, SURFACES, contents, spelled
from tests.lake.local_lake import fill, opened, publish
from tests.lake.table_files import write_table
from tests.server.conftest import Start
from tests.server.server import TapeServer

TOOLS = [{"run_id": "run0", "tool": f"tool{n}", "n_asked": n, "n_ok": n, "n_failed": 0} for n in range(3)]
TAKES_FOR_EVER = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
TAKES_TOO_MUCH = "SELECT repeat('x', 100000000 + range) AS x FROM range(500)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[TapeServer]:
    """A server over a journal of 310 entries whose lake holds 300, with one table."""
    url = f"sqlite:///{folder}/tape.db"
    anyio.run(partial(filled, url, folder / "archive"))
    with TapeServer(folder, url, "--lake", str(folder / "archive")) as server:
        yield server


async def filled(url: str, lake: Path) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 300)
        await fill(store, DeltaLog(lake / "journal"), url, 100)
        await publish(journal, 10)
    write_table(lake, "tool_usage", TOOLS, 300)
    (lake.parent / "secret.csv").write_text("topsecret\n")


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def asked(http: httpx.Client, sql: str, **more: int) -> httpx.Response:
    return http.post("/lake/query", json={"sql": sql, **more})


def test_the_lake_reports_cold_warm_hot_and_its_lag(http: httpx.Client) -> None:
    lake = http.get("/lake").json()

    assert (lake["cold"], lake["warm"]) == ({"floor": 1, "head": 300}, {"floor": 1, "head": 310})
    assert (lake["hot"]["head"], lake["lag"], lake["files"], lake["version"]) == (310, 10, 6, 3)
    assert lake["bytes"] > 0 and lake["lag_ms"] >= 0 and lake["committed_at_ms"] > 0


def test_a_question_is_answered_over_the_journal_and_the_tables(http: httpx.Client) -> None:
    runs = asked(http, "SELECT run_id, count(*) AS n FROM journal GROUP BY ALL ORDER BY 1").json()
    tools = asked(http, "SELECT sum(n_ok) AS ok FROM tool_usage").json()

    assert runs == {"columns": ["run_id", "n"], "rows": [[f"run{n}", 100] for n in range(3)], "is_whole": True}
    assert tools["rows"] == [[3]]


def test_an_answer_is_limited_and_marked_as_truncated(http: httpx.Client) -> None:
    some = asked(http, "SELECT global_seq FROM journal ORDER BY 1", limit=2).json()
    many = asked(http, "SELECT * FROM range(5000)").json()

    assert some == {"columns": ["global_seq"], "rows": [[1], [2]], "is_whole": False}
    assert (len(many["rows"]), many["is_whole"]) == (1000, False)


@pytest.mark.parametrize("name", SURFACES)
def test_nothing_but_a_select_runs_and_no_file_changes(http: httpx.Client, folder: Path, name: str) -> None:
    before = contents(folder)

    answer = asked(http, spelled(HOSTILE[name], folder / "archive" / "journal"))

    assert (answer.status_code, answer.json()["code"]) == (400, "usage_error")
    assert "topsecret" not in answer.text and contents(folder) == before


@pytest.mark.parametrize("sql", ["SELECT nothing FROM journal", "not a question"])
def test_a_question_that_cannot_be_answered_is_refused(http: httpx.Client, sql: str) -> None:
    answer = asked(http, sql)

    assert (answer.status_code, answer.json()["code"]) == (400, "usage_error")


def test_a_question_with_a_lone_surrogate_is_refused(http: httpx.Client) -> None:
    body = json.dumps({"sql": "SELECT '\ud800'"})

    answer = http.post("/lake/query", content=body, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (400, "usage_error")


@pytest.mark.parametrize("sql", [TAKES_FOR_EVER, TAKES_TOO_MUCH], ids=["time", "memory"])
def test_a_question_that_takes_too_much_ends_and_the_server_does_not(
    http: httpx.Client, server: TapeServer, sql: str
) -> None:
    http.get("/lake/tables").raise_for_status()  # what reads a lake is loaded now
    before = server.rss

    answer = asked(http, sql)

    assert answer.status_code in (400, 429), answer.text
    assert http.get("/health").status_code == 200 and server.rss < before + (100 << 20)
    assert psutil.Process(server.pid).children() == []


def test_the_tables_are_listed_and_shown_as_of_a_position(http: httpx.Client) -> None:
    tables = http.get("/lake/tables").json()
    table = http.get("/lake/tables/tool_usage", params={"limit": 2}).json()

    assert tables == {"tables": [{"name": "tool_usage", "through": 300, "rows": 3}]}
    assert table["columns"] == ["run_id", "tool", "n_asked", "n_ok", "n_failed"]
    assert (table["rows"][1], table["n_rows"], table["is_whole"]) == (["run0", "tool1", 1, 1, 0], 3, False)


@pytest.mark.parametrize("name", ["runs", "nobody", "..%2F..%2Ftape.db"])
def test_a_table_that_was_not_made_is_not_found(http: httpx.Client, name: str) -> None:
    answer = http.get(f"/lake/tables/{name}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/lake", "/lake/tables", "/lake/tables/runs"])
@pytest.mark.parametrize("store", ["memory://", "sqlite:///{folder}/tape.db"])
def test_a_missing_lake_is_not_found_with_a_reason(start: Start, tmp_path: Path, store: str, path: str) -> None:
    with start(store.format(folder=tmp_path)).client() as http:
        answer = http.get(path)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert ("has no lake" if store == "memory://" else "tape lake sync") in answer.json()["detail"]


def test_the_lake_of_another_journal_is_a_conflict(start: Start, server: TapeServer, tmp_path: Path) -> None:
    other = start(f"sqlite:///{tmp_path}/other.db", "--lake", str(server.folder / "archive"))

    with other.client() as http:
        assert (http.get("/lake").status_code, http.get("/lake").json()["code"]) == (409, "conflict")
