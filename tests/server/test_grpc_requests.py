"""Any request of any procedure gets a status that the documents name, and leaves only what it asked for."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tape.operations.catalogue import ALL
from tape.operations.surfaces import surfaces_of
from tape.wire import tape_pb2 as pb
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.server import growth
from tests.server.conftest import Start
from tests.server.grpc_requests import requests
from tests.servers.grpc_stub import TapeStub

SERVICE = pb.DESCRIPTOR.services_by_name["Tape"]
EXAMPLES = 8
ROUNDS = 2
LARGEST = 4 << 20
MEMORY = 150 << 20
REFUSALS = {
    "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "ABORTED", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
    "OUT_OF_RANGE",
}  # fmt: skip
DETAILS = "grpc-status-details-bin"
OPERATIONS = {name: each.name for each in ALL if (name := surfaces_of(each).grpc)} | {"ResumeRun": "run.take"}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/tape.db"
        return
    with request.getfixturevalue("postgres_databases").database() as url:
        yield url


def test_any_request_is_answered_and_leaves_only_what_it_asked_for(start: Start, store: str, scale: Scale) -> None:
    server = start(store)
    options = [("grpc.max_receive_message_length", -1)]
    with (
        grpc.insecure_channel(server.rpc.removeprefix("tape://"), options) as channel,
        closing(growth.Census(store)) as census,
    ):
        names = sample_records(TapeStub(channel))
        census.look()
        before = server.rss
        calls = [
            call
            for _ in range(scale(ROUNDS))
            for method in SERVICE.methods
            for call in asked(channel, method, census, names)
        ]
        assert growth.unexplained(calls) == [] and census.stray_tasks() == []

    assert [f"{call.operation}: {call.status}" for call in calls if call.status not in {"OK", *REFUSALS}] == []
    assert {call.status for call in calls} >= {"OK", "INVALID_ARGUMENT", "NOT_FOUND"}
    assert len({call.operation for call in calls if call.growth.entries}) >= 5
    assert "request.failed" not in server.log and server.rss - before < MEMORY


def sample_records(tape: Any) -> dict[str, tuple[str, ...]]:
    """Makes a record of each kind, and a run with more in it than one answer carries; names what has no given name."""
    for run_id in ("opened", "closed", "large"):
        tape.OpenRun(pb.OpenRunRequest(run_id=run_id))
    tape.CloseRun(pb.CloseRunRequest(run_id="closed"))
    for _ in range(6):
        tape.Append(pb.AppendRequest(events=[pb.Event(run_id="large", payload_json=f'"{"x" * 1_000_000}"')]))
    tape.Append(pb.AppendRequest(events=[pb.Event(run_id="opened", subject="/a/b", payload_json='{"n": 2}')]))
    of: Any = {"app_name": "app", "user_id": "user", "session_id": "session"}
    run = tape.BeginRun(pb.BeginRunRequest(**of, invocation_id="begun", scopes=["pay"])).run_id
    tape.CreateSession(pb.CreateSessionRequest(**of))
    tape.WriteValue(pb.WriteValueRequest(namespace="n", key="k", value_json="1"))
    reaction = pb.Reaction(reaction_id="react", name="react", subject_pattern="/a/**", handler_kind="HANDLER_KIND_TASK")
    tape.RegisterReaction(reaction)
    tape.BeginEffect(pb.BeginEffectRequest(run_id=run, tool_name="charge", custom_key="effect"))
    return {"run_id": ("opened", "closed", "large", run, run)}


def asked(channel: Any, method: Any, census: growth.Census, names: dict[str, tuple[str, ...]]) -> list[growth.Call]:
    found: list[growth.Call] = []

    @settings(max_examples=EXAMPLES, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None)
    @given(requests(method.input_type, names))
    def ask(body: bytes) -> None:
        status, answer = (
            stream(channel, method.name, body) if method.server_streaming else unary(channel, method.name, body)
        )
        assert len(answer) <= LARGEST, f"{method.name} answers with {len(answer):,} bytes"
        found.append(
            growth.Call(
                operation=OPERATIONS.get(method.name),
                status=status,
                is_accepted=status == "OK",
                growth=census.look(),
                events=appended(method.name, body, answer) if status == "OK" else None,
            )
        )

    ask()
    return found


def appended(name: str, body: bytes, answer: bytes) -> int | None:
    if name != "Append" or pb.AppendRequest.FromString(body).key:
        return None
    return len(pb.AppendResponse.FromString(answer).entries)


def unary(channel: Any, name: str, body: bytes) -> tuple[str, bytes]:
    try:
        return "OK", channel.unary_unary(f"/{SERVICE.full_name}/{name}")(body, timeout=DEADLINE_S)
    except grpc.RpcError as error:
        return status_of(error), b""


def stream(channel: Any, name: str, body: bytes) -> tuple[str, bytes]:
    """A stream that has begun is left, because it need not end."""
    call = channel.unary_stream(f"/{SERVICE.full_name}/{name}")(body, timeout=DEADLINE_S)
    if dict(call.initial_metadata()):
        call.cancel()
        return "OK", b""
    return status_of(call), b""


def status_of(error: Any) -> str:
    """The status of an answer, and whose it is, if it is not Tape's own."""
    is_ours = any(key == DETAILS for key, _ in error.trailing_metadata() or ())
    return str(error.code().name) if is_ours else f"{error.code().name} of the transport: {error.details()}"
