"""gRPC as strangers see it: health, reflection, errors, deadlines, and a server that leaves."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse
from grpc_status import rpc_status

from tape.wire import tape_pb2 as pb
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def channel(lasting_server: TapeServer) -> Iterator[Any]:
    with opened(lasting_server) as channel:
        yield channel


@pytest.fixture
def tape(channel: Any) -> Any:
    return TapeStub(channel)


def opened(server: TapeServer, *options: tuple[str, int]) -> Any:
    return grpc.insecure_channel(server.rpc.removeprefix("tape://"), options=options)


def refusal(tape: Any, procedure: str, request: Any) -> tuple[Any, ErrorInfo]:
    """The status of a call that must be refused, and what stands in its details."""
    with pytest.raises(grpc.RpcError) as caught:
        getattr(tape, procedure)(request, timeout=DEADLINE_S)
    status: Any = rpc_status.from_call(caught.value)
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    return caught.value.code(), info


def test_a_health_check_finds_the_server_and_its_service(channel: Any) -> None:
    health = health_pb2_grpc.HealthStub(channel)

    answers = [health.Check(health_pb2.HealthCheckRequest(service=name)).status for name in ("", "tape.v1.Tape")]

    assert answers == [SERVING, SERVING]
    with pytest.raises(grpc.RpcError, match="NOT_FOUND"):
        health.Check(health_pb2.HealthCheckRequest(service="tape.v2.Tape"))


def test_reflection_lists_every_procedure_and_message(channel: Any) -> None:
    database = ProtoReflectionDescriptorDatabase(channel)

    services = database.get_services()
    (service,) = database.FindFileContainingSymbol("tape.v1.Tape").service

    assert {"tape.v1.Tape", "grpc.health.v1.Health"} <= {*services}
    assert [method.name for method in service.method] == [
        method.name for method in pb.DESCRIPTOR.services_by_name["Tape"].methods
    ]


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_answers_in_both_versions(channel: Any, version: str) -> None:
    ask = channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    names = ("tape.v1.Tape", f"grpc.reflection.{version}.ServerReflection")
    asked = [ServerReflectionRequest(list_services=""), *(
        ServerReflectionRequest(file_containing_symbol=name) for name in names
    )]  # fmt: skip

    listed, *found = list(ask(iter(asked), timeout=DEADLINE_S))

    services = {service.name for service in listed.list_services_response.service}
    files = [FileDescriptorProto.FromString(each.file_descriptor_response.file_descriptor_proto[0]) for each in found]
    assert {
        "tape.v1.Tape",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    } <= services
    assert [f"{file.package}.{file.service[0].name}" for file in files] == [*names]


@pytest.mark.parametrize(
    ("procedure", "request_", "status", "code"),
    [
        ("GetRun", pb.GetRunRequest(run_id="nobody"), "NOT_FOUND", "not_found"),
        ("GetRun", pb.GetRunRequest(run_id="a/b"), "INVALID_ARGUMENT", "usage_error"),
        ("EndRun", pb.EndRunRequest(run_id="r", status=9), "INVALID_ARGUMENT", "usage_error"),  # type: ignore[arg-type]
        ("ListTasks", pb.ListTasksRequest(limit=1 << 30), "INVALID_ARGUMENT", "usage_error"),
        ("AppendEvent", pb.AppendEventRequest(app_name="a"), "INVALID_ARGUMENT", "usage_error"),
        ("CompleteTask", pb.CompleteTaskRequest(task_id="t", owner="w"), "NOT_FOUND", "not_found"),
        (
            "Append",
            pb.AppendRequest(events=[pb.Event(run_id="nobody", payload_json="1")]),
            "NOT_FOUND",
            "run_not_found",
        ),
    ],
)
def test_a_refusal_has_a_status_and_a_code(tape: Any, procedure: str, request_: Any, status: str, code: str) -> None:
    found, info = refusal(tape, procedure, request_)

    assert (found.name, info.reason, info.domain) == (status, code, "tape.v1")


def test_a_version_that_is_stale_is_aborted(tape: Any) -> None:
    tape.WriteValue(pb.WriteValueRequest(namespace="n", key="stale", value_json="1"))

    status, info = refusal(tape, "WriteValue", pb.WriteValueRequest(namespace="n", key="stale", value_json="2"))

    assert (status, info.reason) == (grpc.StatusCode.ABORTED, "version_conflict")


def test_http_and_grpc_refuse_with_the_same_code(lasting_server: TapeServer, tape: Any) -> None:
    with lasting_server.client() as http:
        answer = http.post("/runs/nobody/events", json={"payload": 1})
    _, info = refusal(tape, "Append", pb.AppendRequest(events=[pb.Event(run_id="nobody", payload_json="1")]))

    assert answer.json()["code"] == info.reason == "run_not_found"


def test_calls_and_events_are_counted_with_those_of_http(start: Start) -> None:
    server = start("memory://")
    with opened(server) as channel, server.client() as http:
        tape = TapeStub(channel)
        tape.Append(pb.AppendRequest(events=[pb.Event(run_id="r", payload_json="1")] * 2, open=True))
        refusal(tape, "GetRun", pb.GetRunRequest(run_id="nobody"))
        assert len(entries(tape, "r")) == 2
        answer = http.get("/metrics").text

    assert 'tape_requests_total{method="gRPC",route="Append",status="OK"} 1' in answer
    assert 'tape_requests_total{method="gRPC",route="GetRun",status="NOT_FOUND"} 1' in answer
    assert "tape_events_published_total 2" in answer


def test_bytes_that_are_no_request_are_refused(channel: Any) -> None:
    call = channel.unary_unary("/tape.v1.Tape/GetRun")

    with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
        call(b"\xff\xff\xff", timeout=DEADLINE_S)


def test_a_deadline_ends_a_stream(tape: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        list(tape.SubscribeBySubject(pb.SubscribeBySubjectRequest(subject_pattern="/nothing/**"), timeout=0.2))

    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def test_the_callers_span_and_cause_are_stored_in_the_entry(tape: Any, run_id: str) -> None:
    span = ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")
    tape.Append(pb.AppendRequest(events=[pb.Event(run_id=run_id, payload_json="1")], open=True))
    (first,) = entries(tape, run_id)

    tape.Append(
        pb.AppendRequest(events=[pb.Event(run_id=run_id, payload_json="2")]),
        metadata=(span, ("tape-cause", str(first.global_seq)), ("tape-schema-version", "7")),
    )
    second = entries(tape, run_id)[1]

    assert (second.trace_id, second.span_id, second.cause) == ("a" * 32, "b" * 16, first.global_seq)
    assert (second.schema_version, second.depth) == (7, 1)


def entries(tape: Any, run_id: str) -> list[pb.EventEntry]:
    batches = tape.TailBatches(pb.TailBatchesRequest(run_id=run_id, no_follow=True), timeout=DEADLINE_S)
    return [entry for batch in batches for entry in batch.entries]


def test_open_streams_end_unavailable_when_the_server_shuts_down(start: Start) -> None:
    server = start("memory://")
    with opened(server) as channel:
        tape = TapeStub(channel)
        stream = tape.SubscribeBySubject(pb.SubscribeBySubjectRequest(), timeout=DEADLINE_S)
        watch = tape.WatchValue(pb.WatchValueRequest(namespace="n", key="k"), timeout=DEADLINE_S)
        watching = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=DEADLINE_S)
        assert next(watching).status == SERVING
        assert dict(stream.initial_metadata()).keys() == {"tape-epoch"}
        assert dict(watch.initial_metadata()).keys() == {"tape-epoch", "tape-version"}

        server.signal(signal.SIGTERM)

        assert next(watching).status == NOT_SERVING
        assert {end(stream), end(watch)} == {grpc.StatusCode.UNAVAILABLE}
    assert server.wait() == 0


def end(stream: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    return caught.value.code()


def test_what_was_answered_before_the_server_left_is_in_the_journal(start: Start, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/tape.db"
    server = start(store)
    with opened(server) as channel:
        tape = TapeStub(channel)
        tape.Append(pb.AppendRequest(events=[pb.Event(run_id="r", payload_json="0")], open=True))
        calls = [tape.Append.future(one_more(number)) for number in range(50)]
        calls[0].result(DEADLINE_S)
        server.signal(signal.SIGTERM)
        ends = [call.code().name for call in calls]
    assert server.wait() == 0

    with opened(start(store)) as channel:
        there = {int(entry.payload_json) for entry in entries(TapeStub(channel), "r")}

    assert {*ends} <= {"OK", "UNAVAILABLE", "CANCELLED"}
    assert {number for number, how in enumerate(ends) if how == "OK"} <= there


def one_more(number: int) -> pb.AppendRequest:
    return pb.AppendRequest(events=[pb.Event(run_id="r", payload_json=str(number))])
