"""The run that a durable function executes: its recorded history, and how far it has come."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

from anyio import NoEventLoopError, from_thread

from tape.core.codec import JsonValue
from tape.core.decision import Decision
from tape.core.effect import Effect, EffectSpec
from tape.core.errors import Conflict, StaleClaim
from tape.core.fork_policy import EffectPolicy, policy_of
from tape.core.run_state import RunState
from tape.sdk.durable.errors import CANNOT_CONTINUE, Interrupted, StepRefused
from tape.sdk.durable.outbox_waits import OutboxWaits
from tape.sdk.durable.steps import ONE_BY_ONE, Steps, enclose, enclosing
from tape.sdk.nouns.node import AsyncNode

P = ParamSpec("P")
T = TypeVar("T")

_CURRENT: Final[ContextVar["RunContext | None"]] = ContextVar("tape_running", default=None)


@dataclass(slots=True, kw_only=True)
class RunContext:
    """A run held by one worker.

    Every execution of a function takes the same steps in the same order, so each step has a stable name: the decision
    before it, and its number among calls of the same kind.
    """

    node: AsyncNode
    run: RunState
    effects: Mapping[str, Effect] = field(default_factory=dict)
    decisions: Mapping[int, Decision] = field(default_factory=dict)
    decision_index: int = -1
    counts: Counter[str] = field(default_factory=Counter)
    waiting: OutboxWaits = field(default_factory=OutboxWaits)
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.run_id)

    @classmethod
    async def of(cls, node: AsyncNode, run: RunState, waiting: OutboxWaits) -> "RunContext":
        """Loads the effects and decisions that earlier workers have recorded."""
        effects = {each.idempotency_key: each for each in await node.effects.list_all(run.run_id)}
        decisions = {each.decision_index: each for each in await node.decisions.list_all(run.run_id)}
        return cls(node=node, run=run, effects=effects, decisions=decisions, waiting=waiting)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def fence(self) -> int:
        return self.run.claim.attempt

    @property
    def policy(self) -> EffectPolicy:
        """What happens to effects; in a run that is no fork they are live."""
        return policy_of(self.run.labels)

    def occurrence(self, kind: str) -> int:
        """The number of this call among those of its kind."""
        self.counts[kind] += 1
        return self.counts[kind] - 1

    async def begin_effect(self, tool: str, request: JsonValue = None, **how: Any) -> Effect:
        """Records the intent; refuses the step if the run's own history contradicts it, and not another run's."""
        try:
            return await self.node.effects.begin(
                self.run_id, tool, request, decision_index=self.decision_index, fence=self.fence, **how
            )
        except StaleClaim:
            raise
        except Conflict as error:
            if await self._has_begun(tool, **how):
                raise self.refuse_other(tool) from error
            raise

    def refuse_other(self, what: str) -> StepRefused:
        """Refuses a step that asks for something else than the recorded one; returns the error to raise."""
        return self.steps.refuse(
            f"{what!r} is another one than the first time: a durable function may depend only on what it is given, "
            "decides, samples and receives"
        )

    async def _has_begun(
        self, tool: str, call_index: int = 0, key: str = "", connector: str = "", business_key: str = "", **how: Any
    ) -> bool:
        """Whether the run has an effect with this key or business key."""
        spec = EffectSpec(
            run_id=self.run.run_id, tool=tool, decision_index=self.decision_index, call_index=call_index, custom_key=key
        )
        return any(
            each.idempotency_key == spec.idempotency_key
            or (business_key and (each.connector, each.business_key) == (connector, business_key))
            for each in await self.node.effects.list_all(self.run_id)
        )


def current_run() -> RunContext:
    """The run that the calling code belongs to."""
    context = _CURRENT.get()
    if context is None:
        raise StepRefused("this belongs into a durable function, in its own task or thread; tape.run_agent runs one")
    return context


@contextmanager
def in_run(context: RunContext) -> Iterator[None]:
    token, outer = _CURRENT.set(context), enclosing()
    enclose(None)  # a step of an enclosing run does not belong to this one
    try:
        yield
    finally:
        enclose(outer)
        _CURRENT.reset(token)


def sync_or_async(function: Callable[P, Coroutine[Any, Any, Any]]) -> Callable[P, Any]:
    """For both kinds of durable functions: an async one awaits it, a plain one calls it."""

    guarded = interruptible(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        if is_in_loop():
            return guarded(*args, **kwargs)
        context = current_run()  # raises a clear error if the thread does not belong to a run
        return call_from_thread(context, function.__name__, partial(guarded, *args, **kwargs))

    return call


def call_from_thread(context: RunContext, name: str, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs an async call for the thread of a plain durable function; refuses other threads."""
    try:
        return from_thread.run(call)
    except NoEventLoopError as error:
        why = f"{name!r} is called in a thread of the function's own; {ONE_BY_ONE}"
        raise context.steps.refuse(why) from error


def step(function: Callable[P, Coroutine[Any, Any, Any]]) -> Callable[P, Any]:
    """Makes a function a step: it begins only when no step is in progress in another task."""

    @wraps(function)
    async def alone(*args: P.args, **kwargs: P.kwargs) -> Any:
        with current_run().steps.step(function.__name__):
            return await function(*args, **kwargs)

    return sync_or_async(alone)


def interruptible(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Ends the durable function if the ledgers refuse this worker: that is no result of the run."""

    @wraps(function)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await function(*args, **kwargs)
        except CANNOT_CONTINUE as error:
            raise Interrupted from error

    return guarded


def is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
