"""The ways to make the calls of `parity_calls`: by the library, over gRPC, over HTTP and by commands."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx
import pytest

import tape
from tape.cli.main import run
from tape.compose import open_store, run_journal
from tape.core.errors import NotFound, UsageError
from tape.core.reaction import Reaction
from tape.matcher.reactions import Reactions
from tape.operations.catalogue import OPERATIONS
from tape.operations.operation import Operation
from tape.operations.surfaces import ALL_RUNS, key_fields, surfaces_of
from tape.outbox import migrate, publish
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode
from tape.wire.operation_json import read_text, request_of
from tape.wire.result_json import is_list, result_type
from tests.contract.reactions import match
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.server.facades import call_by_facade
from tests.server.parity_calls import CALLS, DEAD, POSITIONS, WAITING, Fields

CHANCE: Final = ("epoch", "event_id", "replayed_at", "crc", "child_run_id", "cursor", "last_global_seq", "lag")
Answer = Any
MISSING: Final = "missing"  # an exception says why
BY_NAME: Final = {each.name: each for each in OPERATIONS}


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
        lambda given: {
            "json": {"value": json.loads(given["value_json"]), "writer": given["writer"]},
            "headers": {"If-Match": "*"} if given.get("if_exists") else {},
        },
        dict,
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
    "reaction.list": Own(lambda given: [], lambda answer: {"reactions": answer["reactions"]}),
    "reaction.explain": Own(lambda given: [given["reaction_id"], str(given["global_seq"])], dict),
    "task.list": Own(
        lambda given: [*_option_of(given, "reaction_id", "reaction"), *_option_of(given, "status")],
        lambda answer: {"tasks": answer["tasks"]},
    ),
    "task.replay": Own(
        lambda given: given.get("task_ids") or ["--reaction", given["reaction_id"]],
        lambda answer: {"replayed": answer["task_ids"]},
    ),
    "outbox.list": Own(
        lambda given: [*_option_of(given, "status"), *_option_of(given, "generation"), *_option_of(given, "limit")],
        lambda answer: {"rows": answer["rows"]},
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
    "value.write": Own(
        lambda given: [
            *_named(given), given["value_json"], "--writer", given["writer"],
            *(["--if-exists"] if given.get("if_exists") else []),
        ],
        dict,
    ),
    "value.delete": Own(
        lambda given: [*_named(given), "--if-version", str(given["if_version"])], lambda answer: answer["value"]
    ),
    "gate.send": Own(
        lambda given: [given["run_id"], given["gate"], json.dumps(given["resolution"]), "--key", given["key"]], dict
    ),
    "run.open": Own(lambda given: [given["run_id"], "--label", given.get("label", "")], _opened),
    "run.list": Own(lambda given: ["--prefix", given["prefix"]], lambda answer: {"runs": answer["runs"]}),
    "run.fork": Own(lambda given: [given["parent_run_id"], "--at", str(given["at_seq"])], _forked),
    "run.diff": Own(lambda given: [given["run_id"], given["other"]], _compared),
    "event.list": Own(
        lambda given: ["--run", given["run_id"], "--no-follow"],
        lambda answer: {name: answer["entries"][0][name] for name in ("seq", "kind", "type", "payload_json")},
    ),
}  # fmt: skip


def _option_of(given: Fields, name: str, option: str = "") -> list[str]:
    return [f"--{option or name}", str(given[name])] if name in given else []


async def fill_tasks(url: str) -> None:
    """A reaction with a pending task at each of `POSITIONS`."""
    async with open_store(url) as store, run_journal(store) as journal:
        node = AsyncNode(LocalLedgers(store, journal, Reactions(store, journal)))
        await node.reactions.register(Reaction(reaction_id="work", subject_pattern="/jobs/**", max_concurrency=9))
        events = [tape.Event(run_id="jobs", payload={"n": n}, subject=f"/jobs/{n}") for n in POSITIONS]
        entries = await node.events.append(events, open=True)
        assert [entry.global_seq for entry in entries] == [*POSITIONS]
        await match(store)


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
                found.append(masked(await call_by_facade(node, BY_NAME[name], request)))
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
    return _holds(found, own.expected(expected))


def _holds(found: Answer, expected: Answer) -> bool:
    """Whether an answer has all that is expected; its records may have more members."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(name in found and _holds(found[name], value) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(map(_holds, found, expected))
    return bool(found == expected)


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
    if is_list(operation.result):
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
