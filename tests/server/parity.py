"""One call of every operation, in an order in which each has something to do, and the ways to make them."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

import tape
from tape.cli.main import run
from tape.core.errors import NotFound, UsageError
from tape.core.run_state import Invocation
from tape.operations.catalogue import OPERATIONS
from tape.operations.operation import Operation
from tape.operations.surfaces import ALL_RUNS, key_fields, surfaces_of
from tape.outbox import migrate, publish
from tape.wire.operation_json import read_text, request_of
from tape.wire.result_json import is_list, result_type, write_result
from tests.outbox.business_database import BusinessDatabase, make_event

Fields = Mapping[str, Any]
CHANCE: Final = ("epoch", "event_id", "replayed_at", "crc", "child_run_id", "cursor", "last_global_seq", "lag")
Answer = Any
MISSING: Final = "missing"  # an exception says why
BY_NAME: Final = {each.name: each for each in OPERATIONS}

RUN: Final = Invocation(app="shop", user="ann", session="monday", invocation="one").run_id
FAILED: Final = Invocation(app="shop", user="ann", session="monday", invocation="two").run_id
RUN_NAMES: Final = {"app": "shop", "user": "ann", "session": "monday"}
SESSION: Final = {"app": "chat", "user": "ann", "session": "s 1/ä"}
PAY: Final = {"run_id": RUN, "idempotency_key": "pay 1/ä"}
SHIP: Final = {"run_id": RUN, "idempotency_key": "ship"}
UNDO: Final = {"kind": "refund", "compensator_ref": "give-back", "payload_json": "[1]"}
GREET: Final = {"reaction_id": "greet"}
VALUE: Final = {"namespace": "rates", "key": "eur usd"}
DEAD: Final = UUID(int=1)
WAITING: Final = UUID(int=2)

CALLS: Final[tuple[tuple[str, Fields], ...]] = (
    ("run.begin", {**RUN_NAMES, "invocation": "one", "labels": {"team": "a"}, "scopes": ["pay"]}),
    ("run.take", {"run_id": RUN, "owner": "worker-1", "lease_ms": 90_000}),
    ("run.renew", {"run_id": RUN, "attempt": 1}),
    ("run.newest", RUN_NAMES),
    ("run.get", {"run_id": RUN}),
    ("decision.record", {"run_id": RUN, "decision_index": 0, "model": "m", "response_json": '{"a":1}'}),
    ("decision.get", {"run_id": RUN, "decision_index": 0}),
    ("decision.get", {"run_id": RUN, "decision_index": 9}),
    ("decision.list", {"run_id": RUN}),
    ("effect.begin", {"run_id": RUN, "tool": "pay", "custom_key": "pay 1/ä", "compensation": UNDO}),
    ("effect.pending", {"include_pending": True, "limit": 5}),
    ("effect.complete", {**PAY, "status": "unknown"}),
    ("effect.retry", PAY),
    ("effect.complete", {**PAY, "status": "unknown"}),
    ("effect.reconcile", {**PAY, "status": "confirmed", "response_json": '{"id":"é"}'}),
    ("effect.get", PAY),
    ("effect.get", {**PAY, "idempotency_key": "nothing"}),
    ("effect.begin", {
        "run_id": RUN, "tool": "ship", "custom_key": "ship", "semantics": "non_idempotent",
        "dispatch_mode": "outbox", "connector": "post", "business_key": "parcel-1", "scope": "pay",
    }),
    ("effect.to-dispatch", {"connector": "post"}),
    ("effect.claim", {**SHIP, "owner": "worker-2"}),
    ("effect.attempt", {**SHIP, "attempt": 1, "error": "no answer"}),
    ("effect.list", {"run_id": RUN, "status": "unknown", "connector": "post", "limit": 1}),
    ("effect.observe", {**SHIP, "resolution": "confirmed", "external_ref": "parcel-1"}),
    ("effect.doubt-silent", {"limit": 5}),
    ("effect.list", {"run_id": RUN}),
    ("budget.set", {"run_id": RUN, "usd_cap": 1.5, "token_cap": 100}),
    ("budget.admit", {"run_id": RUN, "tokens": 101}),
    ("budget.reserve", {"run_id": RUN, "reservation_id": "call-1", "usd": 0.25, "tokens": 10}),
    ("budget.settle", {"run_id": RUN, "reservation_id": "call-1", "usd": 0.125, "tokens": 5}),
    ("budget.charge", {"run_id": RUN, "usd": 0.5, "key": "k"}),
    ("budget.get", {"run_id": RUN}),
    ("gate.wait", {"run_id": RUN, "gate": "ok?", "context_json": '"who"'}),
    ("gate.list", {}),
    ("gate.send", {"run_id": RUN, "gate": "ok?", "resolution": "yes", "key": "answer-1"}),
    ("gate.get", {"run_id": RUN, "gate": "ok?"}),
    ("gate.list", {"run_id": RUN}),
    ("timer.set", {"run_id": RUN, "timer_id": "t 1", "fire_at_ms": 1, "kind": "remind", "payload_json": "7"}),
    ("timer.get", {"run_id": RUN, "timer_id": "t 1"}),
    ("timer.get", {"run_id": RUN, "timer_id": "nothing"}),
    ("timer.list", {"status": "set", "kind": "remind"}),
    ("timer.due", {"kinds": ["remind", "other"]}),
    ("timer.claim", {"run_id": RUN, "timer_id": "t 1", "owner": "worker-3"}),
    ("timer.fire", {"run_id": RUN, "timer_id": "t 1", "attempt": 1}),
    ("timer.cancel", {"run_id": RUN, "timer_id": "none"}),
    ("run.begin", {**RUN_NAMES, "invocation": "two"}),
    ("run.to-recover", {"app": "shop"}),
    ("obligation.register", {"run_id": FAILED, "effect_key": "pay", **UNDO}),
    ("obligation.register", {"run_id": FAILED, "effect_key": "ship", **UNDO}),
    ("run.end", {"run_id": FAILED, "status": "failed", "detail_json": '"broke"'}),
    ("obligation.list", {"run_id": FAILED, "status": "pending"}),
    ("obligation.due", {"include_pending": True, "compensators": ["give-back"]}),
    ("obligation.claim", {"run_id": FAILED, "number": 2, "owner": "worker-4"}),
    ("obligation.attempt", {"run_id": FAILED, "number": 2, "attempt": 1, "error": "no", "next_attempt_at_ms": 1}),
    ("obligation.resolve", {"run_id": FAILED, "number": 2, "status": "stuck"}),
    ("obligation.retry", {"run_id": FAILED, "number": 2}),
    ("obligation.resolve", {"run_id": FAILED, "number": 2, "status": "compensated", "result_json": "1"}),
    ("obligation.get", {"run_id": FAILED, "number": 2}),
    ("obligation.get", {"run_id": FAILED, "number": 9}),
    ("run.end", {"run_id": RUN, "status": "terminal"}),
    ("run.compactable", {"before_ms": 4_000_000_000_000}),
    ("run.compact", {"run_id": RUN}),
    ("run.open", {"run_id": "opened-1", "label": "first"}),
    ("run.open", {"run_id": "opened-2"}),
    ("run.list", {"prefix": "opened-1"}),
    ("run.diff", {"run_id": "opened-1", "other": "opened-2"}),
    ("run.cancel", {"run_id": "opened-1", "reason": "enough"}),
    ("event.list", {"run_id": "opened-1"}),
    ("run.fork", {"parent_run_id": "opened-1", "at_seq": 1, "reason": "what if"}),
    ("run.show", {"run_id": "opened-1"}),
    ("run.show", {"run_id": RUN}),
    ("run.close", {"run_id": "opened-2"}),
    ("run.reap", {"run_id": "opened-2"}),
    ("value.write", {**VALUE, "value_json": '{"a":1}', "writer": "ann"}),
    ("value.get", VALUE),
    ("value.list", {"namespace": "rates"}),
    ("value.delete", {**VALUE, "if_version": 1}),
    ("session.create", {**SESSION, "state_json": '{"n":1}'}),
    ("session.append", {**SESSION, "event": {"id": "e1", "author": "ann", "content_json": "1"}}),
    ("session.get", {**SESSION, "max_events": 1}),
    ("session.list", {"app": "chat", "user": "ann"}),
    ("session.delete", SESSION),
    ("reaction.register", {
        "reaction_id": "greet", "subject_pattern": "/tape/event/none/**", "name": "Guests", "predicate_cel": "seq > 1",
        "handler_kind": 2, "retry_max": 3,
    }),
    ("reaction.list", {}),
    ("reaction.get", GREET),
    ("reaction.pause", {**GREET, "reason": "a deploy"}),
    ("reaction.resume", GREET),
    ("reaction.explain", {**GREET, "global_seq": 1}),
    ("task.list", GREET),
    ("task.get", {"task_id": "none"}),
    ("task.replay", GREET),
    ("task.claim", {"owner": "worker-5", "reaction_ids": ["greet"]}),
    ("task.extend", {"task_id": "none", "owner": "worker-5"}),
    ("task.complete", {"task_id": "none", "owner": "worker-5", "attempt": 1}),
    ("task.nack", {"task_id": "none", "owner": "worker-5", "error": "no"}),
    ("reaction.remove", GREET),
    ("reaction.remove", {"reaction_id": "none"}),
    ("outbox.list", {"limit": 1}),
    ("outbox.list", {"status": "failed", "event_type": "orders.placed"}),
    ("outbox.stats", {}),
    ("outbox.get", {"event_id": str(DEAD)}),
    ("outbox.get", {"event_id": str(UUID(int=3))}),
    ("outbox.replay", {"event_ids": [str(DEAD)], "generation": 2, "replayed_by": "ann"}),
    ("outbox.get", {"event_id": str(DEAD)}),
    ("outbox.hand-over", {"retired": 2, "generation": 1}),
    ("outbox.list", {"generation": 1}),
    ("outbox.retain", {"active_ms": 86_400_000}),
    ("outbox.partition", {}),
)  # fmt: skip


class Own(NamedTuple):
    """A route or a command that has its own shape: how it is called, and what its answer has of the usual one."""

    call: Callable[[Fields], Any]
    expected: Callable[[Any], Fields]


def _opened(answer: Any) -> Fields:
    return {"run_id": answer["run_id"]}


def _forked(answer: Any) -> Fields:
    return {"parent_run_id": answer["parent_run_id"], "at_seq": answer["at_seq"]}


def _compared(answer: Any) -> Fields:
    return {name: answer[name] for name in ("one", "other", "shared")}


HTTP: Final[Mapping[str, Own]] = {
    "value.write": Own(
        lambda given: {"json": {"value": json.loads(given["value_json"]), "writer": given["writer"]}}, dict
    ),
    "value.delete": Own(
        lambda given: {"headers": {"If-Match": f'"{given["if_version"]}"'}}, lambda answer: answer["value"]
    ),
    "event.list": Own(lambda given: {}, lambda answer: {name: answer[name] for name in ("next", "head", "closed")}),
}

COMMANDS: Final[Mapping[str, Own]] = {
    "reaction.register": Own(
        lambda given: [
            given["reaction_id"],
            given["subject_pattern"],
            "--name",
            given["name"],
            "--where",
            given["predicate_cel"],
            "--retry-max",
            str(given["retry_max"]),
        ],
        dict,
    ),
    "reaction.list": Own(lambda given: [], lambda answer: answer["reactions"][0]),
    "reaction.explain": Own(lambda given: [given["reaction_id"], str(given["global_seq"])], dict),
    "task.list": Own(lambda given: ["--reaction", given["reaction_id"]], lambda answer: {"tasks": answer["tasks"]}),
    "task.replay": Own(
        lambda given: ["--reaction", given["reaction_id"]], lambda answer: {"replayed": answer["task_ids"]}
    ),
    "outbox.list": Own(
        lambda given: [*_option_of(given, "status"), *_option_of(given, "generation"), *_option_of(given, "limit")],
        lambda answer: answer["rows"][0],
    ),
    "outbox.get": Own(
        lambda given: [given["event_id"]], lambda answer: {**answer["row"], "deliveries": answer["deliveries"]}
    ),
    "outbox.replay": Own(
        lambda given: [*given["event_ids"], "--generation", str(given["generation"]), "--by", given["replayed_by"]],
        dict,
    ),
    "outbox.hand-over": Own(lambda given: [str(given["retired"]), "--generation", str(given["generation"])], dict),
    "outbox.retain": Own(lambda given: ["--active", "1d"], dict),
    "value.write": Own(lambda given: [*_named(given), given["value_json"], "--writer", given["writer"]], dict),
    "value.delete": Own(
        lambda given: [*_named(given), "--if-version", str(given["if_version"])], lambda answer: answer["value"]
    ),
    "gate.send": Own(
        lambda given: [given["run_id"], given["gate"], json.dumps(given["resolution"]), "--key", given["key"]], dict
    ),
    "run.open": Own(lambda given: [given["run_id"], "--label", given.get("label", "")], _opened),
    "run.list": Own(lambda given: ["--prefix", given["prefix"]], lambda answer: answer["runs"][0]),
    "run.fork": Own(lambda given: [given["parent_run_id"], "--at", str(given["at_seq"])], _forked),
    "run.diff": Own(lambda given: [given["run_id"], given["other"]], _compared),
    "event.list": Own(
        lambda given: ["--run", given["run_id"], "--no-follow"],
        lambda answer: {name: answer["entries"][0][name] for name in ("seq", "kind", "type", "payload_json")},
    ),
}


def _option_of(given: Fields, name: str) -> list[str]:
    return [f"--{name}", str(given[name])] if name in given else []


async def fill_outbox(url: str) -> None:
    """An outbox with a dead letter and a row that waits."""
    business = BusinessDatabase(url.partition(":")[0].removesuffix("ql"), url)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await migrate(url)
    async with business.connected() as connection:
        for event_id in (DEAD, WAITING):
            event = make_event(1, event_id=event_id, occurred_at=at, trace_context=f"00-{1:032x}-{1:016x}-01")
            await publish(event, connection)
    dead = f"UPDATE {business.outbox} SET status = 'failed', is_fanned_out = {{}} WHERE id = '{DEAD}'"
    await business.run(dead.format("1" if business.name == "sqlite" else "true"))


def _named(given: Fields) -> list[str]:
    return [given["namespace"], given["key"]]


async def by_library(url: str) -> list[Answer]:
    """The answers in this process, or over gRPC, as the URL says."""
    found: list[Answer] = []
    async with tape.aconnect(url) as node:
        for name, fields in CALLS:
            request = request_of(BY_NAME[name], read_text(BY_NAME[name], fields))
            if surfaces_of(BY_NAME[name]).grpc is None and url.startswith("tape:"):
                found.append(MISSING)
                continue
            try:
                found.append(masked(write_result(BY_NAME[name], await node.call(request))))
            except NotFound:
                found.append(None)
            except UsageError as error:
                found.append({"refused": str(error)})
    return found


def by_http(client: httpx.Client) -> list[Answer]:
    return [masked(_sent(client, BY_NAME[name], fields)) for name, fields in CALLS]


def by_commands(url: str, capsys: pytest.CaptureFixture[str]) -> list[Answer]:
    run(["migrate", "--store", url])
    capsys.readouterr()
    return [masked(_printed(BY_NAME[name], fields, url, capsys)) for name, fields in CALLS]


def differing(expected: list[Answer], found: list[Answer], own: Mapping[str, Own]) -> list[tuple[str, Answer, Answer]]:
    """The calls whose answers differ from the expected ones."""
    return [
        (name, one, other)
        for (name, _), one, other in zip(CALLS, expected, found, strict=True)
        if not _agree(one, other, own.get(name))
    ]


def _agree(expected: Answer, found: Answer, own: Own | None) -> bool:
    if own is None or found == MISSING:
        return found in (expected, MISSING)
    if found is None:
        return expected is None
    return all(found.get(name) == value for name, value in own.expected(expected).items())


def masked(answer: Answer) -> Answer:
    """The answer without times and random names, which differ from call to call."""
    if isinstance(answer, dict):
        return {name: 0 if _is_time(name) else masked(each) for name, each in answer.items()}
    return [masked(each) for each in answer] if isinstance(answer, list) else answer


def _is_time(name: str) -> bool:
    """Whether a field is a time, of chance, or how far a reaction is matched, which a server does by itself."""
    return (name.endswith("_ms") and name != "lease_ms") or name in CHANCE


def _sent(client: httpx.Client, operation: Operation, fields: Fields) -> Answer:
    http, own = surfaces_of(operation).http, HTTP.get(operation.name)
    if http is None:
        return MISSING
    named = {name for _, name, _, _ in Formatter().parse(http.path) if name}
    keys = {name: quote(str(fields.get(name, ALL_RUNS)), safe="") for name in named}
    others = {name: value for name, value in fields.items() if name not in keys}
    given = own.call(fields) if own else {"params" if http.method in ("GET", "DELETE") else "json": others}
    response = client.request(http.method, http.path.format(**keys), **given)
    if response.status_code == httpx.codes.NOT_FOUND:
        return None
    assert response.is_success, f"{operation.name}: {response.text}"
    return response.json()


def _printed(operation: Operation, fields: Fields, url: str, capsys: pytest.CaptureFixture[str]) -> Answer:
    path, own = surfaces_of(operation).cli, COMMANDS.get(operation.name)
    assert path is not None
    arguments = own.call(fields) if own else [*_arguments(operation, fields)]
    code = run([*path.split()[1:], *arguments, "--json", "--store", url])
    printed = capsys.readouterr()
    if code == NotFound.exit_code:
        return None
    if code == UsageError.exit_code:
        return {"refused": json.loads(printed.err)["detail"]}
    assert code == 0, f"{operation.name}: {printed.err}"
    lines = [json.loads(line) for line in printed.out.splitlines()]
    if (own is None or len(lines) != 1) and is_list(operation.result):
        rows, *cursor = result_type(operation).__struct_fields__
        return {rows: lines, **dict.fromkeys(cursor, "")}
    (line,) = lines
    return line


def _arguments(operation: Operation, fields: Fields) -> Iterator[str]:
    yield from (str(fields[name]) for name in key_fields(operation) if name in fields)
    for name, value in fields.items():
        if name not in key_fields(operation):
            yield from _option(f"--{name.replace('_', '-')}", value)


def _option(flag: str, value: Any) -> Iterator[str]:
    if value is True:
        yield flag
    elif isinstance(value, list):
        for each in value:
            yield from (flag, each)
    else:
        yield from (flag, value if isinstance(value, str) else json.dumps(value))
