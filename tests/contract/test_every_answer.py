"""Every operation answers within 4 MiB over HTTP and gRPC, whatever JSON makes of the texts that it answers with."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from string import Formatter
from typing import Any
from urllib.parse import quote

import grpc
import httpx
import pytest

from tape.bus.journal import Journal
from tape.compose import ledgers_of
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.core.run_state import Invocation
from tape.operations.catalogue import OPERATIONS
from tape.operations.operation import Access
from tape.operations.surfaces import ALL_RUNS, surfaces_of
from tape.runs.forks import Forks
from tape.server.app import App
from tape.server.http.guard import Guard
from tape.server.http.router import Router
from tape.server.node import Node
from tape.server.routes.table import ROUTES
from tape.wire.operation_json import read_text, request_of
from tape.wire.procedures import BY_OPERATION
from tests.contract.backends import needs_ledgers
from tests.contract.events import append
from tests.contract.reactions import match, reaction
from tests.contract.serving import served

pytestmark = needs_ledgers

Fields = Mapping[str, Any]
Call = Callable[[str, Fields], Awaitable[int]]

MOST = 4 << 20
BY_NAME = {each.name: each for each in OPERATIONS}
QUOTES = json.dumps("\\" * 225_000)  # 450,002 bytes, which are 900,006 in JSON
SMALL = json.dumps("\\" * 75_000)
CONTROLS = "\x01" * 150_000  # 900,000 bytes in JSON
NUMBERS = (
    json.dumps([1e15] * 32_000).replace("1000000000000000.0", "1e15").replace(" ", "")
)  # 160 kB; HTTP writes 608 kB
NAME = "😀" * 256
LONG = "😀" * 1_024

OWN_ROUTES = frozenset({"value.write", "value.delete"})  # their bodies have other fields
WITHOUT_BODIES = frozenset(
    {
        "run.open", "run.close", "run.cancel", "run.reap", "run.newest", "run.compact", "timer.cancel", "budget.set",
        "budget.admit", "budget.reserve", "budget.settle", "budget.charge", "budget.get", "session.delete",
        "reaction.remove", "task.replay", "run.fork", "gate.send",
    }
)  # fmt: skip
REACTION = {
    "reaction_id": "rule", "subject_pattern": "/a/**", "predicate_cel": f"payload != '{'x' * 4_000}'",
    "max_concurrency": 100,
}  # fmt: skip


def run_of(invocation: str) -> RunId:
    return Invocation(app="a", user="u", session="s", invocation=invocation).run_id


def begin(invocation: str) -> tuple[str, Fields]:
    labels = {f"{n}{NAME[2:]}": NAME for n in range(30)}
    names = {"app": "a", "user": "u", "session": "s", "invocation": invocation}
    return "run.begin", {**names, "owner": "w", "lease_ms": 1_000, "labels": labels, "scopes": ["s"]}


def runs() -> Iterator[tuple[str, Fields]]:
    for n in range(80):
        yield begin(f"waiting {n}")
    for n in range(6):
        run = {"run_id": run_of(f"ended {n}")}
        yield begin(f"ended {n}")
        yield "run.end", {**run, "status": "terminal", "detail_json": QUOTES}
        yield "run.get", run
    yield "run.take", {"run_id": run_of("waiting 1"), "owner": "w2"}
    yield "run.renew", {"run_id": run_of("waiting 2"), "attempt": 1}
    yield "run.to-recover", {"now_ms": 4_000_000_000_000, "limit": 1_000}
    yield "run.compactable", {"before_ms": 4_000_000_000_000, "limit": 1_000}
    yield "run.list", {"limit": 1_000}


def decisions() -> Iterator[tuple[str, Fields]]:
    for number, run in enumerate((run_of("one"), run_of("other"))):
        for n in range(8):
            texts = {"request_json": f"[{number},{SMALL}]", "response_json": SMALL, "rationale": "\x01" * 50_000}
            yield "decision.record", {"run_id": run, "decision_index": n, **texts}
            yield "decision.get", {"run_id": run, "decision_index": n}
    yield "decision.list", {"run_id": run_of("one")}
    yield "run.diff", {"run_id": run_of("one"), "other": run_of("other")}
    yield "event.list", {"run_id": run_of("one")}


def effects() -> Iterator[tuple[str, Fields]]:
    run = run_of("one")
    undo = {"kind": "k", "compensator_ref": "c", "payload_json": SMALL}
    for n in range(8):
        of = {"run_id": run, "idempotency_key": f"e{n}"}
        new = {"run_id": run, "tool": "t", "custom_key": f"e{n}", "request_json": QUOTES, "compensation": undo}
        yield (
            "effect.begin",
            {**new, "dispatch_mode": "outbox", "connector": "c", "semantics": "non_idempotent", "scope": "s"},
        )
        yield "effect.get", of
    yield "effect.to-dispatch", {"limit": 100}
    for n in range(8):
        of = {"run_id": run, "idempotency_key": f"e{n}"}
        yield "effect.claim", {**of, "owner": "w", "lease_ms": 1_000}
    yield "effect.attempt", {"run_id": run, "idempotency_key": "e0", "error": CONTROLS}
    yield "effect.doubt-silent", {"limit": 100, "now_ms": 4_000_000_000_000}
    yield "effect.pending", {"limit": 100}
    yield "effect.list", {"run_id": run, "limit": 100}
    seen = {"run_id": run, "idempotency_key": "e0", "response_json": QUOTES, "error_json": QUOTES}
    yield "effect.observe", {**seen, "resolution": "failed"}
    yield "effect.begin", {"run_id": run, "tool": "t", "custom_key": "in", "request_json": QUOTES, "compensation": undo}
    done = {"run_id": run, "idempotency_key": "in", "response_json": QUOTES, "error_json": QUOTES}
    yield "effect.complete", {**done, "status": "unknown"}
    yield "effect.retry", {"run_id": run, "idempotency_key": "in"}
    yield "effect.complete", {**done, "status": "unknown"}
    yield "effect.reconcile", {**done, "status": "failed"}


def obligations() -> Iterator[tuple[str, Fields]]:
    for n in range(6):
        run = run_of(f"owing {n}")
        yield begin(f"owing {n}")
        for key in ("x", "y", "z"):
            yield "effect.begin", {"run_id": run, "tool": "t", "custom_key": key}
            yield "effect.complete", {"run_id": run, "idempotency_key": key, "status": "confirmed"}
            yield "obligation.register", {"run_id": run, "effect_key": key, "kind": "k", "payload_json": QUOTES}
        yield "run.end", {"run_id": run, "status": "failed", "detail_json": QUOTES}
        yield "obligation.get", {"run_id": run, "number": 3}
    yield "obligation.due", {"limit": 100}
    last = {"run_id": run_of("owing 5"), "number": 3}
    yield "obligation.claim", {**last, "owner": "w"}
    yield "obligation.attempt", {**last, "error": CONTROLS}
    yield "obligation.list", {"run_id": run_of("owing 5")}
    yield "run.show", {"run_id": run_of("owing 5")}
    yield "obligation.retry", last
    yield "obligation.resolve", {**last, "status": "compensated", "result_json": QUOTES}


def gates_and_timers() -> Iterator[tuple[str, Fields]]:
    run = run_of("one")
    for n in range(3):
        yield "gate.send", {"run_id": run, "gate": "g", "resolution": json.loads(QUOTES)}
        yield "gate.send", {"run_id": run, "gate": f"g{n}", "resolution": json.loads(QUOTES)}
    yield "gate.wait", {"run_id": run, "gate": "g", "index": 2}
    yield "gate.get", {"run_id": run, "gate": "g"}
    yield "gate.list", {"run_id": run}
    for n in range(7):
        yield "timer.set", {"run_id": run, "timer_id": f"t{n}", "fire_at_ms": 1, "kind": "k", "payload_json": QUOTES}
        yield "timer.get", {"run_id": run, "timer_id": f"t{n}"}
    yield "timer.list", {"run_id": run}
    yield "timer.due", {"limit": 100}
    yield "timer.claim", {"run_id": run, "timer_id": "t0", "owner": "w"}
    yield "timer.fire", {"run_id": run, "timer_id": "t0", "attempt": 1}
    yield "timer.due", {"limit": 100, "claim": True, "claimer": "w"}


def values_and_sessions() -> Iterator[tuple[str, Fields]]:
    of = {"app": "a", "user": "u", "session": "s"}
    many = MOST // len(json.dumps(SMALL)) + 3  # over 4 MiB in JSON
    for n in range(many):
        yield "value.write", {"namespace": "n", "key": f"k{n}", "value_json": NUMBERS}
        yield "value.write", {"namespace": "q", "key": f"k{n}", "value_json": SMALL}
    yield "value.get", {"namespace": "n", "key": "k0"}
    for namespace in ("n", "q"):
        yield "value.list", {"namespace": namespace, "limit": 1_000}
    yield "value.delete", {"namespace": "n", "key": "k0"}
    for n in range(many):
        yield "session.create", {**of, "session": f"s{n}", "state_json": f'{{"s": {SMALL}}}'}
    yield "session.create", {**of, "state_json": f'{{"s": {SMALL}}}'}
    for n in range(7):
        yield "session.append", {**of, "event": {"id": f"e{n}", "content_json": QUOTES}}
    yield "session.get", of
    yield "session.list", {"app": "a", "user": "u", "limit": 1_000}


def tasks(ids: list[str]) -> Iterator[tuple[str, Fields]]:
    yield "reaction.register", REACTION
    yield "reaction.get", {"reaction_id": "rule"}
    yield "reaction.list", {"limit": 1_000}
    yield "reaction.explain", {"reaction_id": "rule", "global_seq": 2}
    yield "task.list", {"limit": 1_000}
    yield "task.get", {"task_id": ids[0]}
    for _ in ids:
        yield "task.claim", {"owner": "w", "limit": 100, "lease_ms": 600_000}
    yield "task.claim", {"owner": "w", "task_ids": ids}
    yield "task.extend", {"task_id": ids[0], "owner": "w"}
    yield "task.nack", {"task_id": ids[0], "owner": "w", "error": "\x01" * 4_096}
    yield "task.complete", {"task_id": ids[1], "owner": "w", "attempt": 1}
    yield "reaction.pause", {"reaction_id": "rule", "reason": NAME}
    yield "reaction.resume", {"reaction_id": "rule"}


def everything(ids: list[str]) -> Iterator[tuple[str, Fields]]:
    yield from (begin("one"), begin("other"))
    yield from decisions()
    yield from effects()
    yield from obligations()
    yield from gates_and_timers()
    yield from values_and_sessions()
    yield from tasks(ids)
    yield from runs()


@pytest.fixture
async def call(store: Store, journal: Journal) -> AsyncIterator[Call]:
    """Calls an operation and returns the bytes of its largest answer: only what reads can be called over both."""
    ledgers = ledgers_of(store, journal)
    node = Node(journal=journal, runs=store.runs, forks=Forks(journal), ledgers=ledgers, operations=ledgers)
    transport = httpx.ASGITransport(app=App(node, Guard(), Router(ROUTES)))
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://localhost:7880") as client,
        served(store, journal) as url,
        grpc.aio.insecure_channel(url.removeprefix("tape://")) as channel,
    ):

        async def called(name: str, given: Fields) -> int:
            if name in OWN_ROUTES:
                return await over_grpc(channel, name, given)
            size = await over_http(client, name, given)
            reads = BY_NAME[name].access is Access.READ
            return max(size, await over_grpc(channel, name, given)) if reads else size

        yield called


async def over_grpc(channel: grpc.aio.Channel, name: str, given: Fields) -> int:
    request = request_of(BY_NAME[name], read_text(BY_NAME[name], given))
    carried = BY_OPERATION[type(request)]
    send = channel.unary_unary(
        f"/tape.v1.Tape/{carried.name}",
        request_serializer=carried.request.SerializeToString,
        response_deserializer=carried.response.FromString,
    )
    answer: Any = await send(carried.encode(request))
    size: int = answer.ByteSize()
    return size


async def over_http(client: httpx.AsyncClient, name: str, given: Fields) -> int:
    operation = BY_NAME[name]
    route = surfaces_of(operation).http
    assert route is not None
    keys = {key: quote(str(given.get(key, ALL_RUNS)), safe="") for _, key, *_ in Formatter().parse(route.path) if key}
    rest = {key: value for key, value in given.items() if key not in keys}
    body: dict[str, Any] = {"params" if operation.access is Access.READ else "json": rest}
    answer = await client.request(route.method, route.path.format(**keys), **body)
    assert answer.is_success, (name, answer.text[:500])
    return len(answer.content)


async def test_no_answer_is_over_4_mib(store: Store, journal: Journal, call: Call) -> None:
    await store.reactions.register(reaction())
    for _ in range(7):
        await append(store, Event(run_id="r1", payload="\\" * 225_000, subject="/a/b"))
    await match(store)
    for n in range(MOST // (4 * len(LONG.encode())) + 20):
        await journal.open_run(f"long-{n}", RunMeta(label=LONG, app=LONG, user=LONG, session=LONG))
    ids = [task.task_id for task in await store.tasks.listed()]

    sizes = [(name, await call(name, given)) for name, given in everything([str(each) for each in ids])]

    assert [(name, size) for name, size in sizes if size > MOST] == []
    others = {name for name in BY_NAME if name.startswith("outbox.")}  # of tables of their own
    assert {name for name, _ in sizes} | WITHOUT_BODIES | others == set(BY_NAME)
