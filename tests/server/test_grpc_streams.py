"""Streams over gRPC: what there is and then what comes, pushed, each entry once."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import grpc
import pytest

from tape.wire import tape_pb2 as pb
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.process.processes import until
from tests.server.conftest import Start
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub


@pytest.fixture
def tape(server: TapeServer) -> Iterator[Any]:
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        yield TapeStub(channel)


def publish(tape: Any, run_id: str, *payloads: int, subject: str = "") -> list[int]:
    """The positions of events of a run."""
    events = [pb.Event(run_id=run_id, payload_json=str(payload), subject=subject) for payload in payloads]
    answer = tape.Append(pb.AppendRequest(events=events, open=True))
    return [entry.global_seq for entry in answer.entries]


def taken(stream: Any, count: int) -> list[Any]:
    found = list(islice(stream, count))
    stream.cancel()
    return found


def taken_by_batches(stream: Any, count: int) -> list[pb.EventEntry]:
    found = list(islice((entry for batch in stream for entry in batch.entries), count))
    stream.cancel()
    return found


def test_a_tail_has_what_was_and_what_comes_once_each(tape: Any, run_id: str, scale: Scale) -> None:
    many = scale(1_000)
    first = publish(tape, run_id, *range(200))
    stream = tape.TailBatches(pb.TailBatchesRequest(from_global_seq=first[0] - 1, max_entries=64), timeout=DEADLINE_S)
    batch = next(stream)

    for start in range(200, many, 50):
        publish(tape, run_id, *range(start, start + 50))
    rest = taken_by_batches(stream, many - len(batch.entries))

    assert len(batch.entries) <= 64
    assert [int(entry.payload_json) for entry in (*batch.entries, *rest)] == [*range(many)]


def test_a_server_says_where_its_journal_ends(tape: Any, run_id: str, server: TapeServer) -> None:
    last = publish(tape, run_id, 1, 2, 3)[-1]

    answer = tape.GetCapabilities(pb.GetCapabilitiesRequest())
    with server.client() as http:
        also = http.get("/capabilities").json()
        appended = http.post(f"/runs/{run_id}/events", json={"payload": 4}).json()

    assert answer.head == also["head"] == last
    assert answer.epoch == also["epoch"] == appended["epoch"] > 0


def test_a_tail_of_a_run_ends_with_the_run(tape: Any, run_id: str, server: TapeServer) -> None:
    publish(tape, run_id, 1, 2, 3)
    stream = tape.TailBatches(pb.TailBatchesRequest(run_id=run_id, from_seq=2), timeout=DEADLINE_S)
    first = next(stream)

    with server.client() as http:
        http.post(f"/runs/{run_id}/close")
    rest = list(stream)

    assert [entry.seq for entry in first.entries] == [2, 3]
    assert rest == [pb.EventBatch(end=pb.StreamEnd(reason="closed", last_id=3, state="complete"))]


def test_a_subject_and_a_predicate_choose(tape: Any, run_id: str) -> None:
    (start, *_) = publish(tape, run_id, *range(6), subject=f"/shop/{run_id}/sold")
    publish(tape, run_id, 7, subject=f"/shop/{run_id}/lost")

    asked = pb.SubscribeBySubjectRequest(
        subject_pattern=f"/shop/{run_id}/sold", predicate_cel="payload > 2", from_global_seq=start - 1
    )
    found = taken(tape.SubscribeBySubject(asked, timeout=DEADLINE_S), 3)

    assert [entry.payload_json for entry in found] == ["3", "4", "5"]
    assert {entry.run_id for entry in found} == {run_id}


def test_a_predicate_that_is_none_is_refused(tape: Any) -> None:
    stream = tape.SubscribeBySubject(pb.SubscribeBySubjectRequest(predicate_cel="1 +"), timeout=DEADLINE_S)

    with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
        next(stream)


def test_a_stream_begins_at_a_time(tape: Any, run_id: str) -> None:
    publish(tape, run_id, 1, 2)
    since = int(time.time() * 1000) + 5
    until(lambda: time.time() * 1000 > since + 5, "the time has come")
    publish(tape, run_id, 3, 4)

    found = taken(tape.SubscribeEvents(pb.SubscribeEventsRequest(from_ts_ms=since), timeout=DEADLINE_S), 2)

    assert [entry.payload_json for entry in found] == ["3", "4"]


def test_a_kind_and_a_run_choose(tape: Any, run_id: str) -> None:
    publish(tape, run_id, 1)
    publish(tape, f"{run_id}-other", 2)
    publish(tape, run_id, 3)

    found = taken(tape.SubscribeEvents(pb.SubscribeEventsRequest(run_id=run_id, kind="event"), timeout=DEADLINE_S), 2)

    assert [(entry.run_id, entry.payload_json) for entry in found] == [(run_id, "1"), (run_id, "3")]


def test_what_is_appended_is_pushed(tape: Any, run_id: str) -> None:
    stream = tape.SubscribeRun(pb.SubscribeRunRequest(run_id=run_id), timeout=DEADLINE_S)
    stream.initial_metadata()

    publish(tape, run_id, 1)
    (entry,) = taken(stream, 1)

    assert (entry.seq, entry.kind, entry.payload_json) == (1, "event", "1")


def test_a_position_beyond_the_head_is_refused(tape: Any) -> None:
    stream = tape.TailBatches(pb.TailBatchesRequest(from_global_seq=1 << 40), timeout=DEADLINE_S)

    with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
        next(stream)


def test_every_reader_gets_everything(tape: Any, run_id: str, scale: Scale) -> None:
    readers, events = 20, scale(100)
    streams = [tape.SubscribeRun(pb.SubscribeRunRequest(run_id=run_id), timeout=DEADLINE_S) for _ in range(readers)]
    for stream in streams:
        stream.initial_metadata()

    publish(tape, run_id, *range(events))
    found = [taken(stream, events) for stream in streams]

    assert [[int(entry.payload_json) for entry in entries] for entries in found] == [[*range(events)]] * readers


def test_what_is_gone_is_a_gap_to_a_tail_and_the_beginning_to_a_subscriber(start: Start) -> None:
    server = start("memory://", "--event-ring-size", "5")
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        tape = TapeStub(channel)
        publish(tape, "r", *range(20))

        found = taken(tape.SubscribeRun(pb.SubscribeRunRequest(run_id="r"), timeout=DEADLINE_S), 5)
        ends = [
            end(tape.TailBatches(pb.TailBatchesRequest(run_id="r", no_follow=is_short), timeout=DEADLINE_S))
            for is_short in (True, False)
        ]

    assert [entry.seq for entry in found] == [16, 17, 18, 19, 20]
    assert ends == [grpc.StatusCode.OUT_OF_RANGE] * 2


def test_what_is_kept_for_the_next_reader_is_a_gap_once_the_journal_has_lost_it(start: Start) -> None:
    server = start("memory://", "--event-ring-size", "250")
    with grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        tape = TapeStub(channel)
        publish(tape, "r", *range(200))
        everything = pb.TailBatchesRequest(no_follow=True)

        before = [list(tape.TailBatches(everything, timeout=DEADLINE_S)) for _ in range(2)]
        publish(tape, "r", *range(100))

        assert end(tape.TailBatches(everything, timeout=DEADLINE_S)) == grpc.StatusCode.OUT_OF_RANGE
    assert before[0] == before[1] and sum(len(batch.entries) for batch in before[0]) == 200


def end(stream: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    return caught.value.code()
