"""Dry runs and backfills that a server refuses, through real sockets; those that run are in tests/lake."""

from pathlib import Path

import pytest

from tests.server.conftest import Start
from tests.server.server import TapeServer

RULE = {"subject_pattern": "/a/**"}


@pytest.mark.parametrize("path", ["dry-run", "backfill"])
def test_an_invalid_search_is_a_problem_with_a_reason(start: Start, path: str) -> None:
    with start().client() as http:
        http.put("/reactions/r", json=RULE).raise_for_status()

        refusals = {
            "nobody": http.post(f"/reactions/nobody/{path}"),
            "a name": http.post(f"/reactions/%20/{path}"),
            "a place": http.post(f"/reactions/r/{path}", json={"after": -1}),
            "a word": http.post(f"/reactions/r/{path}", json={"before": 1}),
        }

        codes = {name: (refusal.status_code, refusal.json()["code"]) for name, refusal in refusals.items()}
        assert codes["nobody"] == (404, "not_found")
        assert {codes[name] for name in ("a name", "a place", "a word")} == {(400, "usage_error")}


def test_a_store_that_forgets_has_no_history_to_search(tmp_path: Path) -> None:
    with TapeServer(tmp_path, "memory://") as server, server.client() as http:
        http.put("/reactions/r", json=RULE).raise_for_status()

        refusal = http.post("/reactions/r/dry-run")

        assert (refusal.status_code, refusal.headers["content-type"]) == (404, "application/problem+json")
        assert "keeps no history" in refusal.json()["detail"]


def test_a_master_that_is_none_is_named_before_anything_starts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tape.db"
    with TapeServer(tmp_path, url, environment={"TAPE_SPARK_MASTER": "nowhere"}) as server, server.client() as http:
        http.put("/reactions/r", json=RULE).raise_for_status()

        refusal = http.post("/reactions/r/dry-run")

        assert refusal.status_code == 400 and "TAPE_SPARK_MASTER" in refusal.json()["detail"]
        assert http.get("/reactions/r/searches").json() == {"dry_run": None, "backfill": None}
