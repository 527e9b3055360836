"""The routes of reactions and tasks."""

from typing import Final

from tape.server.http.route import Answers, Parameter, Route, answering
from tape.server.routes import reactions, tasks
from tape.server.routes.shapes import Id, Place
from tape.server.routes.work_shapes import (
    Deregistered,
    Explained,
    Limit,
    NewRule,
    Pause,
    Payload,
    ReactionDetail,
    Reactions,
    Replay,
    Replayed,
    Rule,
    Status,
    TaskDetail,
    TaskName,
    Tasks,
)

_ID: Final = Parameter(name="reaction_id", place="path", shape=Id, about="Which reaction.")
_TASK: Final = Parameter(name="task_id", place="path", shape=TaskName, about="Which task.")
_PLACE: Final = Parameter(name="global_seq", place="path", shape=Place, about="The entry's position.")
_PATTERN: Final = Parameter(name="subject_pattern", place="query", shape=str, about="Only those of this pattern.")
_FILTERS: Final = (
    Parameter(name="reaction_id", place="query", shape=Id, about="Only those of one reaction."),
    Parameter(name="status", place="query", shape=Status, about="Only those of one status."),
    Parameter(name="limit", place="query", shape=Limit, about="How many tasks at most."),
    Parameter(name="cursor", place="query", shape=str, about="The next_cursor of the page before."),
    Parameter(name="payload", place="query", shape=Payload, about="With none, payloads are left out."),
)
_ONE: Final = (400, 404, 503)
_BODY: Final = (400, 413, 415, 503)

ROUTES: Final = (
    Route(
        method="GET", path="/reactions", name="listReactions", summary="List reactions",
        handler=answering(reactions.list_reactions), parameters=(_PATTERN,), answers=Answers(shape=Reactions),
        problems=(400, 503),
    ),
    Route(
        method="POST", path="/reactions", name="registerReaction", summary="Register a reaction, or change it",
        handler=answering(reactions.register), body=NewRule, answers=Answers(status=201, shape=ReactionDetail),
        problems=_BODY,
    ),
    Route(
        method="PUT", path="/reactions/{reaction_id}", name="putReaction", summary="The same under an id",
        handler=answering(reactions.put_reaction), parameters=(_ID,), body=Rule, answers=Answers(shape=ReactionDetail),
        problems=_BODY,
    ),
    Route(
        method="GET", path="/reactions/{reaction_id}", name="showReaction",
        summary="Look at a reaction: where it is, how far behind, how its predicate erred",
        handler=answering(reactions.show_reaction), parameters=(_ID,), answers=Answers(shape=ReactionDetail),
        problems=_ONE,
    ),
    Route(
        method="DELETE", path="/reactions/{reaction_id}", name="deregisterReaction", summary="Remove a reaction",
        handler=answering(reactions.remove_reaction), parameters=(_ID,), answers=Answers(shape=Deregistered),
        problems=_ONE,
    ),
    Route(
        method="POST", path="/reactions/{reaction_id}/pause", name="pauseReaction",
        summary="Match and claim nothing more until it is resumed", handler=answering(reactions.pause_reaction),
        parameters=(_ID,), body=Pause, is_body_required=False, answers=Answers(shape=ReactionDetail),
        problems=(*_BODY, 404),
    ),
    Route(
        method="POST", path="/reactions/{reaction_id}/resume", name="resumeReaction",
        summary="Read on where it was paused", handler=answering(reactions.resume_reaction), parameters=(_ID,),
        answers=Answers(shape=ReactionDetail), problems=_ONE,
    ),
    Route(
        method="GET", path="/reactions/{reaction_id}/explain/{global_seq}", name="explainReaction",
        summary="Why an entry became a task of a reaction, or why not",
        handler=answering(reactions.explain_reaction), parameters=(_ID, _PLACE), answers=Answers(shape=Explained),
        problems=(*_ONE, 410),
    ),
    Route(
        method="GET", path="/tasks", name="listTasks", summary="List tasks, the newest first",
        handler=answering(tasks.list_tasks), parameters=_FILTERS, answers=Answers(shape=Tasks), problems=(400, 503),
    ),
    Route(
        method="POST", path="/tasks/replay", name="replayTasks", summary="Give dead tasks another chance",
        handler=answering(tasks.replay_tasks), body=Replay, answers=Answers(shape=Replayed), problems=_BODY,
    ),
    Route(
        method="GET", path="/tasks/{task_id}", name="showTask", summary="Look at a task and its life",
        handler=answering(tasks.show_task), parameters=(_TASK,), answers=Answers(shape=TaskDetail), problems=_ONE,
    ),
    Route(
        method="POST", path="/tasks/{task_id}/replay", name="replayTask", summary="Give a dead task another chance",
        handler=answering(tasks.replay_task), parameters=(_TASK,), answers=Answers(shape=Replayed),
        problems=(*_ONE, 409),
    ),
)  # fmt: skip
