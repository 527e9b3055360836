"""The procedures of tape.proto that carry the operations of reactions and tasks."""

from typing import Any, Final

from tape.core.page import Page
from tape.core.task import ANY_SHARD
from tape.operations import reactions, tasks
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping
from tape.wire.messages.tasks import EXPLANATION, RECORD, TASK, TASK_DETAIL, check_kind, recorded, sent
from tape.wire.procedure import Fields, ResultCodec, flag, pages, procedure, record

REPLAYED: Final = MessageMapping(tasks.ReplayedTasks, pb.ReplayTasksResponse)
CLAIMED: Final = MessageMapping(tasks.ClaimedTasks, pb.ClaimTasksResponse)
REACTION_RECORD: Final = ResultCodec(lambda result, request: {"self": recorded(result, request)}, RECORD.value)


def _registered(message: Any) -> Fields:
    check_kind(message)
    return {}


def _reactions(page: Page[Any], request: Any) -> Fields:
    return {"reactions": [recorded(each, request) for each in page.rows], "next_cursor": page.next_cursor}


def _wanted(message: Any) -> Fields:
    """Any number below 0 is any shard; old clients name one reaction in a field of its own."""
    one = (message.reaction_id,) if message.reaction_id else ()
    return {"shard": max(message.shard, ANY_SHARD), "reaction_ids": (*message.reaction_ids, *one)}


def _within(field: str, mapping: MessageMapping[Any, Any]) -> ResultCodec:
    """A record in a field of the response."""
    return ResultCodec(
        lambda result, _: {field: mapping.message(result)}, lambda message: mapping.value(getattr(message, field))
    )


_LEASE: Final = {"lease": "lease_ms"}

PROCEDURES: Final = (
    procedure(reactions.RegisterReaction, REACTION_RECORD, write=sent, read=_registered),
    procedure(
        reactions.ListReactions,
        pages("reactions", RECORD)._replace(encode=_reactions),
        write=lambda _: {"with_progress": True},
    ),
    procedure(reactions.GetReaction, REACTION_RECORD),
    procedure(reactions.PauseReaction, REACTION_RECORD),
    procedure(reactions.ResumeReaction, REACTION_RECORD),
    procedure(reactions.RemoveReaction, flag("deregistered"), name="DeregisterReaction"),
    procedure(reactions.ExplainReaction, record(EXPLANATION)),
    procedure(tasks.ListTasks, pages("tasks", TASK)),
    procedure(tasks.GetTask, record(TASK_DETAIL)),
    procedure(tasks.ReplayTasks, record(REPLAYED)),
    procedure(tasks.ClaimTasks, record(CLAIMED), names={**_LEASE, "limit": "max"}, read=_wanted),
    procedure(tasks.ExtendTask, _within("task", TASK), names=_LEASE),
    procedure(tasks.CompleteTask, _within("task", TASK)),
    procedure(tasks.NackTask, _within("task", TASK)),
)  # fmt: skip
