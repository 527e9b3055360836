"""The server's documents match its behaviour: checked by schemathesis, Prometheus and JSON Schema."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from prometheus_client.parser import text_string_to_metric_families
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tape.operations.catalogue import ALL
from tape.telemetry import Meters
from tests.conftest import Scale
from tests.process.processes import until
from tests.server import growth
from tests.server.conftest import Start
from tests.server.server import TapeServer

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 3
STATEFUL_S = 10
MEMORY = 100 << 20
HERE = Path(__file__).parent
HOOKS = "tests.server.schemathesis_hooks"
REPLACED = "positive_data_acceptance,negative_data_rejection"  # by checks of schemathesis_hooks
KEPT = "use_after_free"  # a removed reaction is found, with `deleted`: its tasks and its history are still explained
NOT_CALLED = "^/events|^/session/|^/lake|dry-run|backfill"  # streams that never end, and what starts a JVM


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/tape.db"
        return
    with request.getfixturevalue("postgres_databases").database() as url:
        yield url


def test_schemathesis_finds_nothing_and_leaves_only_what_it_asked_for(
    start: Start, store: str, scale: Scale, tmp_path: Path
) -> None:
    server, calls = start(store), tmp_path / "calls.jsonl"
    before = server.rss
    search = partial(run_schemathesis, server.url, tmp_path, f"{store} {calls}")

    found = [
        search("examples,fuzzing", "--max-examples", str(scale(EXAMPLES))),
        search("stateful", "--max-time", str(scale(STATEFUL_S))),  # it would never end
    ]

    assert [each.stdout for each in found if each.returncode] == []
    assert "request.failed" not in server.log
    asked = growth.read(calls)
    with closing(growth.Census(store)) as census:
        assert growth.unexplained(asked) == [] and census.stray_tasks() == []
    assert {call.operation for call in asked if call.growth.entries} >= {"run.begin", "value.write", "session.create"}
    assert server.rss - before < MEMORY


def run_schemathesis(url: str, folder: Path, growth: str, *phases: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml",
        "run", f"{url}/openapi.json", "--checks", "all", "--exclude-checks", f"{REPLACED},{KEPT}",
        "--exclude-path-regex", NOT_CALLED, "--continue-on-failure", "--no-color",
        "--generation-deterministic", "--phases", *phases,
    ]  # fmt: skip
    variables = {"SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(HERE.parents[1]), "GROWTH": growth}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )


def test_streams_are_accepted_and_refused_as_the_document_says(
    lasting_server: TapeServer, lasting: httpx.Client, scale: Scale
) -> None:
    document = lasting.get("/openapi.json").json()
    lasting.post("/runs", json={"run_id": "r"})
    lasting.post("/runs/r/events", json=[{"payload": n} for n in range(3)])
    schema = schemathesis.openapi.from_dict(streams(document))
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    seen: set[int] = set()

    @settings(max_examples=scale(EXAMPLES) * 32, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(operations))
        case = data.draw(operation.as_strategy(data.draw(st.sampled_from(GenerationMode))))
        for place in (case.path_parameters, case.query):
            if "run_id" in (place or {}) and data.draw(st.booleans()):
                place["run_id"] = "r"
        seen.add(begun(case, lasting_server.url))

    ask()

    assert len(operations) == 2 and seen >= {200, 400, 404} and max(seen) < 500
    until(lambda: "tape_subscribers 0\n" in lasting.get("/metrics").text, "everybody is gone")


def begun(case: schemathesis.Case[Any], url: str) -> int:
    """The status of an answer; one that is a stream is left after its head, because it need not end."""
    with requests.request(**case.as_transport_kwargs(base_url=url), stream=True, timeout=20) as answer:
        if answer.status_code == 200:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        else:
            case.validate_response(answer, checks=CHECKS)
        return answer.status_code


def streams(document: dict[str, Any]) -> dict[str, Any]:
    """The document with nothing but its streams."""
    paths = document["paths"].items()
    return {
        **document,
        "paths": {path: item for path, item in paths if path.endswith("/events") and "post" not in item},
    }


def test_every_reference_of_both_documents_leads_somewhere(lasting: httpx.Client) -> None:
    for path in ("/openapi.json", "/asyncapi.json"):
        document = lasting.get(path).json()

        assert [name for name in references(document) if not leads(document, name)] == []


def test_the_document_has_every_path_of_the_surface(lasting: httpx.Client) -> None:
    paths = lasting.get("/openapi.json").json()["paths"]

    assert set(paths) >= {"/health", "/ready", "/capabilities", "/metrics", "/runs", "/runs/{run_id}", "/events"}
    assert set(paths) >= {"/runs/{run_id}/close", "/runs/{run_id}/events", "/session/{run_id}/events"}


def test_every_operation_has_a_tag_its_problems_and_an_example_that_fits(lasting: httpx.Client) -> None:
    document = lasting.get("/openapi.json").json()
    tags = {tag["name"] for tag in document["tags"]}

    for operation in (each for item in document["paths"].values() for each in item.values()):
        assert set(operation["tags"]) <= tags and "400" in operation["responses"]
        if body := operation.get("requestBody"):
            content = body["content"]["application/json"]
            jsonschema_rs.validate({**content["schema"], "components": document["components"]}, content["example"])
        for parameter in (each for each in operation.get("parameters", ()) if each["in"] == "path"):
            jsonschema_rs.validate(parameter["schema"], parameter["example"])


def test_a_problem_of_the_document_names_its_codes(lasting: httpx.Client) -> None:
    responses = lasting.get("/openapi.json").json()["components"]["responses"]

    assert "expected_seq_conflict" in responses["Problem409"]["description"]
    assert responses["Problem404"]["content"]["application/problem+json"]["example"]["code"] == "not_found"


def test_every_frame_of_a_stream_is_in_the_document(lasting: httpx.Client, run_id: str) -> None:
    document = lasting.get("/asyncapi.json").json()
    lasting.post("/runs", json={"run_id": run_id})
    lasting.post(f"/runs/{run_id}/events", json=[{"payload": value} for value in (1, None, {"a": [True]}, "x")])
    lasting.post(f"/runs/{run_id}/close")

    stream = lasting.get("/events", params={"run_id": run_id}).text
    frames = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]

    assert [frame["type"] for frame in frames] == ["message"] * 4 + ["replay_complete", "run_end"]
    for frame in frames:
        name = frame["type"] if frame["type"] in document["components"]["messages"] else "entry"
        message = document["components"]["messages"][name]
        jsonschema_rs.validate({**message["payload"], "components": document["components"]}, frame)


def test_prometheus_reads_the_metrics(lasting: httpx.Client, run_id: str) -> None:
    before = sample(lasting, "tape_events_published_total")
    lasting.post("/runs", json={"run_id": run_id})
    lasting.post(f"/runs/{run_id}/events", json=[{"payload": 1}] * 3)

    after = sample(lasting, "tape_events_published_total")
    families = {family.name for family in text_string_to_metric_families(lasting.get("/metrics").text)}

    assert after - before == 3
    assert {meter.name.removesuffix("_total") for meter in Meters().all()} <= families


def test_the_four_counters_are_asked_for_as_json(lasting: httpx.Client, run_id: str) -> None:
    lasting.post("/runs", json={"run_id": run_id})

    counters = lasting.get("/metrics", headers={"accept": "application/json"}).json()

    assert set(counters) == {"events_published", "events_streamed", "streams_dropped", "runs_open"}
    assert counters["runs_open"] >= 1


def test_no_metric_is_labelled_by_a_run(lasting: httpx.Client, run_id: str) -> None:
    lasting.post("/runs", json={"run_id": run_id})
    lasting.get(f"/runs/{run_id}")
    lasting.get(f"/nowhere/{run_id}")

    assert run_id not in lasting.get("/metrics").text


def test_capabilities_name_what_a_client_may_ask_for(lasting: httpx.Client) -> None:
    answer = lasting.get("/capabilities").json()

    assert all(answer["features"][name] for name in ("session_events", "slow_client_warning", "typed_event_schema"))
    assert answer["limits"]["max_max_queued"] == 2048
    assert "response_json" in answer["operations"]["effect.complete"]
    assert "lease_ms" in answer["operations"]["timer.claim"]  # as the body of the request has it
    assert {*answer["operations"]} == {each.name for each in ALL}


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_a_healthy_server_is_reported_healthy(lasting: httpx.Client, path: str) -> None:
    assert lasting.get(path).status_code == 200


def sample(http: httpx.Client, name: str) -> float:
    families = text_string_to_metric_families(http.get("/metrics").text)
    return sum(found.value for family in families for found in family.samples if found.name == name)


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in references(value)]
    return [name for value in node for name in references(value)] if isinstance(node, list) else []


def leads(document: Any, reference: str) -> bool:
    for part in reference.removeprefix("#/").split("/"):
        document = document.get(part) if isinstance(document, dict) else None
    return document is not None
