"""What the fields of requests mean, what they may hold, and an example of each required one.

The tables go by a field's name; `Class.name` is a field of that class alone.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, is_dataclass
from datetime import timedelta
from enum import Enum
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin

from tape.core.producer import MAX_TURNS
from tape.core.reaction import BOUNDS as REACTION_BOUNDS, HandlerKind
from tape.core.run_query import LAST_MS, MAX_PAGE
from tape.operations import rules
from tape.operations.rules import Rule, whole

V = TypeVar("V")
NAMED_BY_APP: Final = ("Invocation", "FindNewestRun", "ListRunsToRecover", "SessionId", "CreateSession", "ListSessions")
MAX_LIMIT: Final = 10_000
MAX_TOKENS: Final = (1 << 53) - 1
MAX_WAIT_MS: Final = 1 << 53
LONGEST_WAIT: Final = timedelta(minutes=1)
NO_WAIT: Final = timedelta(0)

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "active_ms": "How long a row that has ended is kept, in milliseconds.",
        "after": "The last seq handled; 0 is before the first.",
        "agent_app": "The app that a run is begun of, if the reaction is an agent.",
        "app": "The app that the work or the run belongs to.",
        "at_seq": "The last seq that the fork inherits.",
        "attempt": "The attempt that the caller holds.",
        "bootstrap_from_head": "Leave out what happened before it is registered.",
        "before": "Only events before this number; 0: all.",
        "before_ms": "Only runs that ended before this time.",
        "business_key": "A key that is unique within the connector.",
        "call_index": "The number of this call of the tool within its decision.",
        "call_key": "The same key again writes once.",
        "cause": "The position of the entry that the run was begun for.",
        "claim": "Lease the timers to the caller.",
        "claimer": "The worker that the timers are leased to.",
        "closed_after": "Only runs closed at this time or later, in milliseconds since 1970.",
        "closed_before": "Only runs closed before this time.",
        "compensate_on_duplicate": "How to undo the effect if it happened twice.",
        "compensation": "How to undo the effect.",
        "compensator_ref": "The name of the compensator; the kind if it is left out.",
        "compensators": "Only obligations that one of these compensators can undo.",
        "connector": "The connector that carries out the effect.",
        "context_json": "What the run shows to whoever answers.",
        "cursor": "The next_cursor of the page before.",
        "custom_key": "The effect's key, if it is not made of decision, tool and call.",
        "debounce_ms": "Wait for so long a silence on a subject, in milliseconds.",
        "decision_index": "The number of the decision in its run.",
        "detail_json": "Why and how the run ended.",
        "dlq_after_n": "The most attempts.",
        "dispatch_mode": "Who carries out the effect: the run itself, or a dispatcher.",
        "effect_key": "The key of the effect to undo.",
        "effects": "What becomes of effects in the fork.",
        "epoch": "The epoch of the journal that `after` is from.",
        "error": "What failed.",
        "error_json": "The error that the effect ended with.",
        "event": "The event to append.",
        "event_id": "The id of the event, a UUID.",
        "event_ids": "The events; without them, the dead letters that the other fields select.",
        "event_type": "Only events of this type.",
        "external_ref": "The name of the effect in the outside system.",
        "fence": "The attempt of the run's worker; a newer one makes the request fail.",
        "fire_at_ms": "When the timer fires, in milliseconds since 1970.",
        "from_generation": "Only dead letters of this generation.",
        "gate": "The name of the gate in its run.",
        "generation": "The generation whose workers deliver the rows from now on.",
        "ListOutbox.generation": "Only rows of this generation.",
        "global_seq": "The position of the entry.",
        "grace_ms": "How long a row stays marked before it is deleted, in milliseconds.",
        "handled_active_ms": "How long a handled key is kept, in milliseconds.",
        "handled_grace_ms": "How much longer a handled key is kept, in milliseconds.",
        "handler_kind": "What handles a match: 1 a run of an agent, 2 a function of a worker, 3 a message to a peer.",
        "handler_name": "Only dead letters that this handler failed.",
        "idempotency_key": "The key of the effect in its run.",
        "identity": "On whose behalf the run acts.",
        "if_exists": "Only over a value, of whatever version.",
        "if_version": "Only over this version; 0: only if there is no value.",
        "include_committed_expired": "With claimed ones whose lease has ended.",
        "include_pending": "With pending ones.",
        "include_stuck": "With stuck ones.",
        "include_unknown": "With those whose outcome is unknown.",
        "index": "The number of this wait at the gate.",
        "invocation": "The name of the run within its session.",
        "key": "The same key again is done once.",
        "OfValue.key": "The value's name in its namespace.",
        "kind": "The kind, which names the handler.",
        "ListTimers.kind": "Only timers of this kind.",
        "kinds": "Only timers of these kinds.",
        "label": "The run's label.",
        "labels": "Labels of the run.",
        "lease_ms": "How long the claim lasts without renewal, in milliseconds.",
        "limit": "The longest list to return.",
        "max_attempts": "After so many failed attempts it is stuck.",
        "max_bytes": "The most bytes of tasks to claim.",
        "max_concurrency": "The most tasks at a time, over all workers.",
        "max_events": "The newest events, at most so many.",
        "model": "The model that decided.",
        "mutation": "What is changed for the fork.",
        "n_turns": "For how many turns the producer goes on.",
        "name": "What people call it.",
        "namespace": "The value's namespace.",
        "next_attempt_at_ms": "When to try again, in milliseconds since 1970; 0: never.",
        "next_dispatch_at_ms": "When to try again, in milliseconds since 1970; 0: never.",
        "now_ms": "The time to judge by, in milliseconds since 1970; the store's clock if it is left out.",
        "num_shards": "Parts that workers claim separately.",
        "number": "The obligation's number in its run.",
        "older_than_ms": "Only those that are pending for longer, in milliseconds.",
        "only_unresolved": "Only those that are not resolved.",
        "opened_after": "Only runs opened at this time or later, in milliseconds since 1970.",
        "opened_before": "Only runs opened before this time.",
        "order": "The order of the list.",
        "other": "The run to compare with.",
        "owner": "The worker that claims.",
        "parent": "Only forks of this run.",
        "parent_run_id": "The run to fork.",
        "payload_json": "What the handler gets.",
        "permanent": "The task must not be retried.",
        "policy_version": "The version of the policy that the decision followed.",
        "prefix": "Only runs whose ids begin with it.",
        "producer": "The producer that continues the fork.",
        "rationale": "Why it was decided so.",
        "reason": "Why; an entry says it.",
        "predicate_cel": "Only entries that this CEL condition holds for.",
        "publish_target": "The peer that a message is sent to, such as pubsub://project/topic.",
        "rate_limit_per_s": "The most starts a second, over all workers; 0: no limit.",
        "reaction_id": "The id of the reaction.",
        "ListTasks.reaction_id": "Only tasks of this reaction.",
        "ReplayTasks.reaction_id": "All dead tasks of this reaction.",
        "reaction_ids": "Only tasks of these reactions.",
        "release": "The work was not attempted: any worker may claim the task at once.",
        "replayed_by": "Who replays; the row's history says it.",
        "request_json": "What was asked for.",
        "reservation_id": "The name of the reservation.",
        "resolution": "What a check has shown, or the answer at a gate.",
        "response_json": "What was answered.",
        "result_json": "What the compensation returned.",
        "retired": "The generation whose rows are handed over.",
        "retry_after_ms": "Wait so long before the next attempt instead of the reaction's backoff, in milliseconds.",
        "retry_backoff_ms": "The wait after the first failed attempt, in milliseconds; it doubles.",
        "retry_max": "Attempts after the first.",
        "run_id": "The id of the run.",
        "scope": "The scope that the effect needs.",
        "scopes": "The scopes that the run has.",
        "semantics": "Whether the effect may be repeated.",
        "session": "The name of the session, unique for its app and user.",
        "started_at": "When the run started, as its producer says.",
        "shard": "Only tasks of this shard; -1: of any.",
        "state_delta_json": "The changes of the session's state.",
        "state_json": "The session's first state.",
        "status": "Only those with this status.",
        "EffectOutcome.status": "What became of it: done (confirmed), not done (failed), or not known (unknown).",
        "EndRun.status": "Returned (terminal), failed, cancelled, undone now (compensating) or up to a person (stuck).",
        "ResolveObligation.status": "It is undone (compensated), or a person has to see to it (stuck).",
        "subject_pattern": "The subjects of the entries that match.",
        "ListReactions.subject_pattern": "Only reactions with exactly this pattern.",
        "task_id": "The id of the task.",
        "task_ids": "The ids of dead tasks.",
        "ClaimTasks.task_ids": "Renew the claims that the worker holds among these tasks, and claim no others.",
        "timeout_ms": "An attempt that takes longer has failed, in milliseconds.",
        "timer_id": "The name of the timer in its run.",
        "token_cap": "The most tokens that the run may use.",
        "tokens": "How many tokens.",
        "tool": "The tool that is called.",
        "usd": "How many dollars.",
        "usd_cap": "The most dollars that the run may spend.",
        "user": "The name of the user.",
        "value_json": "The value as JSON.",
        "wait_ms": "How long to wait for an entry or for the run's end, in milliseconds.",
        "without_payloads": "Leave out what the tasks carry.",
        "writer": "Who writes it.",
    }
)

RETENTIONS: Final = ("active", "grace", "handled_active", "handled_grace")
LONGEST_KEPT: Final = timedelta(days=36_500)

EXAMPLES: Final[Mapping[str, str | int | dict[str, str]]] = MappingProxyType(
    {
        "app": "shop", "at_seq": 3, "attempt": 1, "before_ms": 1_893_456_000_000, "decision_index": 0,
        "effect_key": "charge-1", "event": {"id": "event-1"}, "fire_at_ms": 1_893_456_000_000, "gate": "approval",
        "event_id": "5f0c7f2e-1f0a-4b6e-9a53-0d9a3e0c2b11",
        "global_seq": 7, "reaction_id": "greet-guests", "task_id": "0f343b0931126a20.000000000000007",
        "idempotency_key": "charge-1", "key": "fx", "kind": "refund", "namespace": "treasury", "number": 1,
        "other": "order-2", "owner": "worker-1", "reservation_id": "call-1", "resolution": "confirmed", "retired": 1,
        "parent_run_id": "order-1", "run_id": "order-1", "session": "monday", "status": "confirmed",
        "timer_id": "reminder", "tool": "charge-card",
        "user": "ann", "value_json": "1",
    }
)  # fmt: skip

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "run_id": rules.RUN_ID, "OpenRun.run_id": rules.OPTIONAL_RUN_ID, "SendSignal.run_id": rules.OPTIONAL_RUN_ID,
        "other": rules.RUN_ID, "parent": rules.ID, "prefix": rules.ID,
        "owner": rules.OWNER, "RunSpec.owner": rules.OPTIONAL_OWNER,
        "reaction_id": rules.REACTION_ID, "ListTasks.reaction_id": rules.OPTIONAL_REACTION_ID,
        "ReplayTasks.reaction_id": rules.OPTIONAL_REACTION_ID,
        # The app of work is an id; that of a run or a session may be any name.
        "app": rules.APP, "SendSignal.app": rules.OPTIONAL_NAME, "RunQuery.app": rules.LABEL,
        **dict.fromkeys((f"{each}.app" for each in NAMED_BY_APP), rules.NAME),
        "FindNewestRun.user": rules.OPTIONAL_NAME, "FindNewestRun.session": rules.OPTIONAL_NAME,
        **{f"RunMeta.{each}": rules.LABEL for each in ("label", "started_at", "app", "user", "session")},
        "RunQuery.label": rules.LABEL,
        "subject_pattern": rules.PATTERN, "predicate_cel": rules.CEL, "publish_target": rules.LABEL,
        "agent_app": rules.APP, "handler_kind": rules.checked_elsewhere(HandlerKind),
        "cursor": rules.CURSOR, "error": rules.BODY, "rationale": rules.BODY, "reason": rules.BODY,
        "PauseReaction.reason": rules.REASON,
        "value_json": rules.JSON, "state_json": rules.OBJECT, "state_delta_json": rules.OBJECT,
        "limit": rules.limit(MAX_LIMIT), "ListRuns.limit": rules.limit(MAX_PAGE),
        "ListEvents.limit": rules.limit(MAX_PAGE),
        "max_attempts": whole(1), "cause": whole(1), "global_seq": whole(1), "max_bytes": whole(1),
        "tokens": whole(0, MAX_TOKENS), "token_cap": whole(0, MAX_TOKENS), "retry_after_ms": whole(0, MAX_WAIT_MS),
        "shard": whole(-1, (1 << 31) - 1), "n_turns": whole(0, MAX_TURNS),
        **dict.fromkeys(("opened_after", "opened_before", "closed_after", "closed_before"), whole(0, LAST_MS)),
        **{name: whole(*bounds) for name, bounds in REACTION_BOUNDS.items()},
        "wait": rules.duration(NO_WAIT, LONGEST_WAIT),
        "event_id": rules.EVENT_ID, "event_ids": rules.EVENT_IDS, "event_type": rules.EVENT_TYPE,
        "replayed_by": rules.NAME,
        **{f"OutboxRetention.{each}": rules.duration(NO_WAIT, LONGEST_KEPT) for each in RETENTIONS},
    }
)  # fmt: skip


def of_field(table: Mapping[str, V], request: type, name: str) -> V | None:
    """What a table has about a field of a request."""
    owners = (each.__name__ for each in request.__mro__ if name in vars(each).get("__annotations__", ()))
    return table.get(f"{next(owners, '')}.{name}", table.get(name))


def meaning_of(request: type, name: str) -> str:
    """What a field of a request means to users."""
    found = of_field(MEANINGS, request, name)
    if found is None:
        raise KeyError(f"{request.__name__}.{name} is not explained")
    return found


def rule_of(request: type, field: Field[Any]) -> Rule:
    """What a field of a request may hold, apart from None."""
    kind = without_none(field.type)
    known = of_field(RULES, request, field.name)
    if known is not None:
        return known
    if kind is int:
        return whole(min(0, field.default) if type(field.default) is int else 0)
    if kind is timedelta:
        return rules.LEASE
    if isinstance(kind, type) and issubclass(kind, Enum):
        return rules.one_of(kind, getattr(request, "statuses", ()) if field.name == "status" else ())
    return _text_rule(field) if _is_text(kind) else _other_rule(kind)


def _text_rule(field: Field[Any]) -> Rule:
    if field.name.endswith("_json"):
        return rules.BODY
    return rules.NAME if is_required(field) else rules.OPTIONAL_NAME


def _other_rule(kind: Any) -> Rule:
    if get_origin(kind) is tuple:
        return rules.NAMES
    if isinstance(kind, type) and (kind is bool or is_dataclass(kind)):
        return rules.instance(kind)
    return rules.checked_elsewhere(rules.Dollars) if kind is float else rules.LABELS


def _is_text(kind: Any) -> bool:
    return kind is str or getattr(kind, "__supertype__", None) is str


def without_none(kind: Any) -> Any:
    """A type without its None; of several types the first counts."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return next(each for each in get_args(kind) if each is not NoneType)


def may_be_none(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType) and NoneType in get_args(kind)


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING
