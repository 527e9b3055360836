"""Servers of another version: what they lack is refused by name or left out, before they are asked for it."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
import pytest
from anyio import to_thread
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from tape.compose import open_store, run_journal
from tape.core.errors import Unsupported
from tape.core.ids import RunId
from tape.core.run_state import Invocation
from tape.operations.effects import ListPendingEffects, RecordDecision
from tape.operations.runs import BeginRun, CompactRun
from tape.runs.ledgers import LocalLedgers
from tape.sdk.remote.ledgers import RemoteLedgers, connect_ledgers
from tape.sdk.remote.server_knowledge import ServerKnowledge
from tape.server.grpc import reflection
from tape.server.grpc.methods import SERVICE, handlers
from tape.server.grpc.rpc_context import RpcContext
from tape.wire import tape_pb2 as pb

LACKS = {"CompactRun": "", "RecordDecisionRequest": "rationale", "ListPendingEffectsRequest": "limit"}
tells_or_not = pytest.mark.parametrize("tells", [True, False], ids=["that tells", "from before"])


def reduced() -> FileDescriptorProto:
    """tape.proto as an older version had it."""
    file = FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    methods = [each for each in file.service[0].method if each.name not in LACKS]
    del file.service[0].method[:]
    file.service[0].method.extend(methods)
    for message in file.message_type:
        kept = [each for each in message.field if each.name != LACKS.get(message.name)]
        del message.field[:]
        message.field.extend(kept)
    return file


@asynccontextmanager
async def older(*, tells: bool) -> AsyncIterator[RemoteLedgers]:
    """A client of an older server."""
    async with older_server(tells=tells) as url, connect_ledgers(url) as ledgers:
        yield ledgers


@asynccontextmanager
async def older_server(*, tells: bool) -> AsyncIterator[str]:
    """A server that lacks an operation and fields, and may not know GetCapabilities either."""
    async with open_store("memory://") as store, run_journal(store) as journal:
        ledgers, file = LocalLedgers(store, journal), reduced()
        known = ServerKnowledge.of_file(file)
        table = dict(handlers(RpcContext(store=store, journal=journal, ledgers=ledgers, operations=ledgers)))
        served = {name: each for name, each in table.items() if name in known.procedures - {"GetCapabilities"}}
        if tells:
            served["GetCapabilities"] = answering(known)
        server: Any = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, served),))
        server.add_generic_rpc_handlers(reflection.handlers((SERVICE.full_name,), file.SerializeToString()))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        yield f"tape://127.0.0.1:{port}"
        await server.stop(0)


def answering(known: ServerKnowledge) -> Any:
    messages = [pb.KnownMessage(name=name, fields=fields) for name, fields in known.messages.items()]
    answer = pb.GetCapabilitiesResponse(version="0.9", procedures=known.procedures, messages=messages)

    async def answered(_: bytes, context: Any) -> bytes:
        return answer.SerializeToString()

    return grpc.unary_unary_rpc_method_handler(answered)


async def run_of(ledgers: RemoteLedgers) -> RunId:
    of = Invocation(app="treasury", user="ann", session="s", invocation="1")
    return (await ledgers.call(BeginRun(of=of, owner="worker"))).run.run_id


@tells_or_not
async def test_an_operation_that_the_server_lacks_is_refused_by_name(tells: bool) -> None:
    async with older(tells=tells) as ledgers:
        run = await run_of(ledgers)

        with pytest.raises(Unsupported, match="does not know CompactRun; update the server") as refused:
            await ledgers.call(CompactRun(run_id=run))

    assert refused.value.version == ("0.9" if tells else "")


@tells_or_not
async def test_a_field_that_the_server_lacks_is_refused_by_name_if_it_is_used(tells: bool) -> None:
    async with older(tells=tells) as ledgers:
        decision = RecordDecision(run_id=await run_of(ledgers), decision_index=0)

        with pytest.raises(Unsupported, match="the field rationale of RecordDecision"):
            await ledgers.call(RecordDecision(run_id=decision.run_id, decision_index=1, rationale="why"))

        assert (await ledgers.call(decision)).decision_index == 0


@tells_or_not
async def test_a_bound_that_the_server_lacks_is_left_out(tells: bool) -> None:
    async with older(tells=tells) as ledgers:
        assert await ledgers.call(ListPendingEffects(limit=7)) == []


@tells_or_not
async def test_where_the_journal_of_an_older_server_ends_is_unknown(tells: bool) -> None:
    async with older_server(tells=tells) as url:
        command = [sys.executable, "-m", "tape.cli.main", "tail", "--store", url]
        refused = await to_thread.run_sync(
            partial(subprocess.run, command, capture_output=True, text=True, check=False)
        )

    assert refused.returncode == 2 and "say --from N" in refused.stderr


@tells_or_not
async def test_the_operations_of_an_older_server_are_those_that_it_knows(tells: bool) -> None:
    async with older_server(tells=tells) as url:
        command = [sys.executable, "-m", "tape.cli.main", "operations", "--json", "--store", url]
        listed = await to_thread.run_sync(partial(subprocess.run, command, capture_output=True, text=True, check=True))

    names = {row["name"] for row in json.loads(listed.stdout)}
    assert {"run.get", "event.append"} <= names and not names & {"run.compact", "node.metrics"}


def test_only_bounds_are_left_out() -> None:
    known = ServerKnowledge.of_file(reduced())

    sent = known.fit("ListPendingEffects", pb.ListPendingEffectsRequest(limit=7, older_than_ms=3))

    assert sent == pb.ListPendingEffectsRequest(older_than_ms=3)


@pytest.mark.parametrize("procedures", [(), ("GetRun",)])
def test_a_server_of_this_version_gets_the_request_as_it_is(procedures: Collection[str]) -> None:
    messages = {"GetRunRequest": frozenset({"run_id"})}
    request = pb.GetRunRequest(run_id="r")

    assert ServerKnowledge(procedures=frozenset(procedures), messages=messages).fit("GetRun", request) is request
