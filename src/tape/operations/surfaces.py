"""Where an operation can be called: its HTTP route, its gRPC procedure, its command and its method of the SDK.

All four follow from the operation's name and fields. The tables name what differs, and what is missing and why.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from tape.operations.exceptions import EXCEPTIONS
from tape.operations.fields import is_required
from tape.operations.operation import Access, Operation

KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "run": ("run_id",), "decision": ("run_id", "decision_index"), "effect": ("run_id", "idempotency_key"),
        "obligation": ("run_id", "number"), "gate": ("run_id", "gate"), "timer": ("run_id", "timer_id"),
        "budget": ("run_id",), "value": ("namespace", "key"), "session": ("app", "user", "session"),
        "reaction": ("global_seq", "reaction_id"), "task": ("task_id",), "outbox": ("event_id",),
    }
)  # fmt: skip
PLURALS: Final = {"budget": "budget", "outbox": "outbox"}  # a run has one budget, and a server one outbox
ALL_RUNS: Final = "-"  # in a path, in place of a run that is not named
SHORT_VERBS: Final = {"list": "ls", "get": "show"}


class HttpRoute(NamedTuple):
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str


HTTP: Final[Mapping[str, HttpRoute]] = MappingProxyType(
    {
        "run.open": HttpRoute("POST", "/runs"),
        "run.list": HttpRoute("GET", "/runs"),
        "run.show": HttpRoute("GET", "/runs/{run_id}"),
        "run.get": HttpRoute("GET", "/runs/{run_id}/state"),
        "run.fork": HttpRoute("POST", "/forks"),
        "run.diff": HttpRoute("GET", "/runs/{run_id}/diff/{other}"),
        "event.list": HttpRoute("GET", "/runs/{run_id}/events"),
        "value.write": HttpRoute("PUT", "/values/{namespace}/{key}"),
        "value.delete": HttpRoute("DELETE", "/values/{namespace}/{key}"),
        "gate.send": HttpRoute("POST", "/runs/{run_id}/gates/{gate}"),
        "session.delete": HttpRoute("DELETE", "/sessions/{app}/{user}/{session}"),
        "reaction.register": HttpRoute("POST", "/reactions"),
        "reaction.remove": HttpRoute("DELETE", "/reactions/{reaction_id}"),
        "reaction.explain": HttpRoute("GET", "/reactions/{reaction_id}/explain/{global_seq}"),
        "event.append": HttpRoute("POST", "/runs/{run_id}/events"),
        "event.stream": HttpRoute("GET", "/events"),
        "lake.status": HttpRoute("GET", "/lake"),
        "lake.tables": HttpRoute("GET", "/lake/tables"),
        "lake.table": HttpRoute("GET", "/lake/tables/{name}"),
        "lake.query": HttpRoute("POST", "/lake/query"),
        "reaction.dry-run": HttpRoute("POST", "/reactions/{reaction_id}/dry-run"),
        "reaction.cancel-search": HttpRoute("DELETE", "/reactions/{reaction_id}/searches"),
        "node.capabilities": HttpRoute("GET", "/capabilities"),
        "node.metrics": HttpRoute("GET", "/metrics"),
    }
)
SECOND_ROUTES: Final[Mapping[str, HttpRoute]] = MappingProxyType(
    {"reaction.register": HttpRoute("PUT", "/reactions/{reaction_id}")}
)
CREATED: Final[Mapping[HttpRoute, str]] = MappingProxyType(
    {
        HttpRoute("POST", "/runs"): "/runs/{run_id}",
        HttpRoute("POST", "/reactions"): "/reactions/{reaction_id}",
    }
)  # a 201, and where the new record is

GRPC: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run.take": "ResumeRun",
        "run.renew": "ResumeRun",
        "reaction.remove": "DeregisterReaction",
        "event.append": "Append",
        "event.stream": "TailBatches",
    }
)

CLI: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run.get": "tape run state", "event.list": "tape tail",
        "gate.send": "tape run signal", "value.write": "tape value set", "value.get": "tape value get",
        "value.delete": "tape value delete", "reaction.register": "tape reaction add",
        "reaction.remove": "tape reaction rm", "outbox.retain": "tape outbox retention",
        "event.append": "tape publish", "event.stream": "tape tail",
    }
)  # fmt: skip

SDK: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run.renew": "runs.heartbeat", "effect.pending": "effects.in_doubt", "effect.to-dispatch": "dispatch.due",
        "effect.claim": "dispatch.claim", "effect.attempt": "dispatch.attempt", "effect.observe": "dispatch.observe",
        "effect.doubt-silent": "dispatch.mark_lost_in_doubt", "value.write": "values.set",
        **{f"outbox.{verb}": f"outbox.{verb}" for verb in ("list", "get", "stats", "replay", "retain")},
        "outbox.hand-over": "outbox.hand_over",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Surfaces:
    """Where one operation can be called; None stands for an exception, whose reason `missing` has."""

    http: HttpRoute | None
    grpc: str | None
    cli: str | None
    sdk: str | None
    missing: Mapping[str, str]


def surfaces_of(operation: Operation) -> Surfaces:
    missing = {surface: why for (name, surface), why in EXCEPTIONS.items() if name == operation.name}
    return Surfaces(
        http=None if "http" in missing else HTTP.get(operation.name) or _route(operation),
        grpc=None if "grpc" in missing else GRPC.get(operation.name, operation.request.__name__),
        cli=None if "cli" in missing else CLI.get(operation.name) or _command(operation),
        sdk=None if "sdk" in missing else SDK.get(operation.name) or _method(operation),
        missing=missing,
    )


def row_of(operation: Operation) -> dict[str, Any]:
    """An operation as a row of the catalogue."""
    found = surfaces_of(operation)
    return {
        "name": operation.name, "summary": operation.summary, "verb": operation.access.value,
        "scope": operation.scope.value, "kind": operation.shape.value, "repeat": operation.repeat.value,
        "http": None if found.http is None else found.http._asdict(), "grpc": found.grpc, "cli": found.cli,
        "sdk": found.sdk, "except": dict(found.missing),
    }  # fmt: skip


def key_fields(operation: Operation) -> tuple[str, ...]:
    """The fields that name what the operation is about, in the order of a path; the others are its body."""
    known = {each.name: each for each in flat_fields(operation.request)}
    found = tuple(name for name in KEYS.get(operation.noun, ()) if name in known and is_required(known[name]))
    return ("run_id", *found) if may_be_all_runs(operation) else found


def path_fields(http: HttpRoute) -> tuple[str, ...]:
    """The fields in the path of a route, in order."""
    return tuple(name for _, name, _, _ in Formatter().parse(http.path) if name)


def plural(noun: str) -> str:
    return PLURALS.get(noun, f"{noun}s")


def may_be_all_runs(operation: Operation) -> bool:
    """Whether the operation is about one run or, without one, about all."""
    return any(each.name == "run_id" and each.default is None for each in flat_fields(operation.request))


def may_lack_run(operation: Operation) -> bool:
    """Whether the operation can be called without a run, as about all runs or about the newest one of a session."""
    return any(each.name == "run_id" and not is_required(each) for each in flat_fields(operation.request))


def flat_fields(kind: Any) -> tuple[Field[Any], ...]:
    """The fields of a dataclass; those of its field `of`, which identifies it, stand in its place."""
    found: list[Field[Any]] = []
    for each in fields(kind):
        found += flat_fields(each.type) if each.name == "of" else [each]
    return tuple(found)


def _route(operation: Operation) -> HttpRoute:
    """`/runs/{run_id}/effects/{idempotency_key}/complete`; `-` in place of a run id stands for all runs."""
    keys = key_fields(operation)
    parts = [] if operation.noun == "run" else [plural(operation.noun)]
    if "run_id" in KEYS.get(operation.noun, ()):
        parts = ["runs", "{run_id}" if "run_id" in keys else ALL_RUNS, *parts]
    parts += [f"{{{name}}}" for name in keys if name != "run_id"]
    if operation.verb not in SHORT_VERBS and not _creates(operation, keys):
        parts.append(operation.verb)
    return HttpRoute("GET" if operation.access is Access.READ else "POST", "/" + "/".join(parts))


def _creates(operation: Operation, keys: tuple[str, ...]) -> bool:
    """Whether the operation names where a record is, but not the record: a POST to the collection creates it."""
    own = KEYS.get(operation.noun, ())
    return bool(own and keys) and own[-1] not in keys and operation.access is Access.WRITE


def _command(operation: Operation) -> str:
    return f"tape {operation.noun} {SHORT_VERBS.get(operation.verb, operation.verb)}"


def _method(operation: Operation) -> str:
    return f"{operation.noun}s.{operation.verb.replace('-', '_')}"
