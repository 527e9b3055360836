"""Reactions and tasks on the wire."""

from typing import Any, Final

from tape.core.matched import ReactionRecord
from tape.core.reaction import HandlerKind, Reaction
from tape.core.task import Task
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping

REACTION: Final = MessageMapping(Reaction, pb.Reaction)
TASK: Final = MessageMapping(Task, pb.Task, {"span_id": "parent_span_id"})

_AT_LEAST_1: Final = ("max_concurrency", "retry_max", "retry_backoff_ms", "dlq_after_n", "num_shards", "timeout_ms")


def asked(said: pb.Reaction) -> Reaction:
    """The reaction to register: where a count is left out or makes no sense, the usual one."""
    usual: dict[str, Any] = {name: getattr(_USUAL, name) for name in _AT_LEAST_1 if getattr(said, name) <= 0}
    kind = {} if said.handler_kind else {"handler_kind": _kind(said)}
    return REACTION.value(said, **usual, **kind)


def recorded(record: ReactionRecord) -> pb.Reaction:
    told: dict[str, Any] = {"created_at_ms": record.created_at_ms, "deleted": record.is_removed}
    return REACTION.message(record.reaction, **told)


def _kind(said: pb.Reaction) -> HandlerKind:
    if said.agent_app:
        return HandlerKind.AGENT
    return HandlerKind.PUBLISH if said.publish_target else HandlerKind.TASK


_USUAL: Final = Reaction(reaction_id="usual")
