"""What each surface calls in its own way gives the same answers: appends, streams, histories and the lake."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

import tape
from tape.cli.main import run
from tape.core.codec import JsonValue
from tape.core.errors import Conflict
from tape.lake.log import DeltaLog
from tests.lake.local_lake import fill, opened
from tests.lake.table_files import write_table
from tests.server.conftest import Start
from tests.server.parity import fill_tasks
from tests.server.parity_calls import POSITIONS

Answers = Mapping[str, Any]
MakeStore = Callable[[], str]
Capture = pytest.CaptureFixture[str]

PAYLOADS: Final[tuple[JsonValue, ...]] = ({"n": 1}, ["é", None])
ENTRY: Final = ("run_id", "seq", "global_seq", "type", "kind", "subject", "schema_version")
VERSION: Final = ("version", "value", "deleted", "writer", "prev_version")
QUERY: Final = "SELECT global_seq, subject, [1.5, NULL] AS list FROM journal ORDER BY 1"
TOOLS: Final = [{"run_id": "jobs", "tool": "pay", "n_asked": 1, "n_ok": 1, "n_failed": 0}]


@pytest.fixture
def make_store(make_empty: MakeStore) -> MakeStore:
    """Makes stores with five entries of a run."""

    def make() -> str:
        url = make_empty()
        anyio.run(fill_tasks, url)
        return url

    return make


def picked(found: Mapping[str, Any], names: Sequence[str]) -> Answers:
    return {name: found[name] for name in names if name in found}


async def by_library(url: str) -> Answers:
    events = [tape.Event(run_id="direct", type="reply", payload=each) for each in PAYLOADS]
    found: dict[str, Any] = {}
    async with tape.aconnect(url) as node:
        await node.runs.open("direct")
        for name in ("appended", "appended again"):
            entries = await node.events.append(events, key="k")
            found[name] = [{"seq": entry.seq, "global_seq": entry.global_seq} for entry in entries]
        try:
            await node.events.append(events, expected_seq=9)
        except Conflict as error:
            found["refused"] = error.code
        await node.runs.close("direct")
        for name, options in (("of a run", {"run_id": "direct"}), ("by subject", {"subject": "/jobs/**"})):
            async with aclosing(await node.events.stream(**options, follow=False)) as stream:  # type: ignore[arg-type]
                found[name] = [{**picked(entry._asdict(), ENTRY), "payload": entry.payload} async for entry in stream]
        await node.values.set("rates", "usd", 1, writer="ann")
        await node.values.set("rates", "usd", {"a": 2})
        await node.values.delete("rates", "usd")
        changes = await node.values.history("rates", "usd", 2)
        found["versions"] = [
            {**picked(plain_version(change.value), VERSION), "prev_version": change.prev_version} for change in changes
        ]
    return found


def plain_version(value: Any) -> Answers:
    return {"version": value.version, "value": value.value, "deleted": value.deleted, "writer": value.writer}


def by_http(http: httpx.Client) -> Answers:
    body = [{"type": "reply", "payload": each} for each in PAYLOADS]
    found: dict[str, Any] = {}
    http.post("/runs", json={"run_id": "direct"}).raise_for_status()
    for name in ("appended", "appended again"):
        answer = http.post("/runs/direct/events", json=body, headers={"Idempotency-Key": "k"})
        found[name] = answer.json()["entries"]
    found["refused"] = http.post("/runs/direct/events", json=body, headers={"Expected-Seq": "9"}).json()["code"]
    http.post("/runs/direct/close").raise_for_status()
    found["of a run"] = frames(http, len(PAYLOADS), run_id="direct")
    found["by subject"] = frames(http, len(POSITIONS), subject="/jobs/**", from_global_seq=0)
    path = "/values/rates/usd"
    http.put(path, json={"value": 1, "writer": "ann"}).raise_for_status()
    http.put(path, json={"value": {"a": 2}}).raise_for_status()
    http.delete(path).raise_for_status()
    versions = http.get(f"{path}/history", params={"limit": 2}).json()["versions"]
    found["versions"] = [picked(version, VERSION) for version in versions]
    return found


def frames(http: httpx.Client, count: int, **options: Any) -> list[Answers]:
    """The first entries of a stream, which need not end."""
    with http.stream("GET", "/events", params=options) as stream:
        lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
        entries = islice((line for line in lines if "seq" in line), count)
        return [{**picked(entry, ENTRY), "payload": entry["data"]} for entry in entries]


def by_commands(url: str, folder: Path, capsys: Capture) -> Answers:
    def call(*arguments: str) -> list[Any]:
        capsys.readouterr()
        code = run([*arguments, "--json", "--store", url])
        printed = capsys.readouterr()
        return [json.loads(line) for line in (printed.err if code else printed.out).splitlines()]

    lines = folder / "payloads.jsonl"
    lines.write_text("".join(f"{json.dumps(each)}\n" for each in PAYLOADS))
    publish = ("publish", "direct", f"@{lines}", "--type", "reply")
    found: dict[str, Any] = {}
    call("run", "open", "direct")
    for name in ("appended", "appended again"):
        found[name] = [picked(each, ("seq", "global_seq")) for each in call(*publish, "--key", "k")]
    (problem,) = call(*publish, "--expected-seq", "9")
    found["refused"] = problem["code"]
    call("run", "close", "direct")
    for name, options in (("of a run", ("--run", "direct")), ("by subject", ("/jobs/**",))):
        entries = call("tail", *options, "--no-follow")
        found[name] = [{**picked(each, ENTRY), "payload": json.loads(each["payload_json"])} for each in entries]
    call("value", "set", "rates", "usd", "1", "--writer", "ann")
    call("value", "set", "rates", "usd", '{"a": 2}')
    call("value", "delete", "rates", "usd")
    found["versions"] = [picked(each, VERSION) for each in call("value", "history", "rates", "usd", "--limit", "2")]
    return found


def test_appends_streams_and_histories_are_the_same_on_every_surface(
    make_store: MakeStore, start: Start, tmp_path: Path, capsys: Capture
) -> None:
    expected = anyio.run(by_library, make_store())

    assert expected["appended"] == expected["appended again"] and expected["refused"] == "expected_seq_conflict"
    assert [len(expected[name]) for name in ("of a run", "by subject", "versions")] == [2, 5, 2]
    assert by_commands(make_store(), tmp_path, capsys) == expected
    with start(make_store()).client() as http:
        assert by_http(http) == expected
    assert anyio.run(by_library, start(make_store()).rpc) == expected


def test_the_lake_is_the_same_over_http_and_by_a_command(
    make_store: MakeStore, start: Start, tmp_path: Path, capsys: Capture
) -> None:
    url, lake = make_store(), tmp_path / "archive"
    anyio.run(fill_lake, url, lake)
    program = str(Path(sys.executable).with_name("tape"))
    command = [program, "lake", "query", QUERY, "--json", "--lake", str(lake), "--store", url]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    run(["lake", "status", "--json", "--lake", str(lake), "--store", url])
    status = json.loads(capsys.readouterr().out)

    with start(url, "--lake", str(lake)).client() as http:
        queried = http.post("/lake/query", json={"sql": QUERY}).json()
        shown = http.get("/lake").json()

    rows = [dict(zip(queried["columns"], row, strict=True)) for row in queried["rows"]]
    assert [json.loads(line) for line in printed] == rows and len(rows) == POSITIONS[-1]
    assert {**status, "lag_ms": 0, "hot": 0} == {**shown, "lag_ms": 0, "hot": 0}  # a reading process has its own


async def fill_lake(url: str, lake: Path) -> None:
    async with opened(url) as (store, _):
        await fill(store, DeltaLog(lake / "journal"), url)
    write_table(lake, "tool_usage", TOOLS, POSITIONS[-1])
