"""`@tape.effect`: a function whose call is recorded before it happens, and happens once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from typing import Any, Final, ParamSpec

from tape.core import codec
from tape.core.codec import JsonValue, encode_optional
from tape.core.effect import Compensation, DispatchMode, Effect, EffectStatus, Semantics
from tape.core.errors import Conflict, UsageError
from tape.core.fork_policy import EffectPolicy
from tape.core.text import replace_unstorable
from tape.sdk.durable.calling import call_function, with_key
from tape.sdk.durable.compensators import compensators
from tape.sdk.durable.errors import AckLost, StepRefused, failure
from tape.sdk.durable.fork_effects import complete_without_effect
from tape.sdk.durable.outbox_waits import sleep_unless_interrupted
from tape.sdk.durable.outcomes import complete, first_recorded
from tape.sdk.durable.references import reference
from tape.sdk.durable.retries import ONCE, Retries, retried
from tape.sdk.durable.run_context import RunContext, current_run, step
from tape.work.deadline import DEADLINE, check_deadline

POLL_S: Final = 0.1

P = ParamSpec("P")
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function with an effect, and its options."""

    function: Function
    name: str
    compensate: Function | None = None
    status_check: Function | None = None
    stub: Function | None = None
    retry: Retries = ONCE
    semantics: Semantics = Semantics.IDEMPOTENT
    dispatch: DispatchMode = DispatchMode.INLINE
    connector: str = ""
    business_key: Callable[..., str] | str = ""
    scope: str = ""
    timeout: timedelta = DEADLINE

    def __post_init__(self) -> None:
        if self.semantics is Semantics.NON_IDEMPOTENT and self.dispatch is not DispatchMode.OUTBOX:
            raise UsageError("a NON_IDEMPOTENT effect requires dispatch mode OUTBOX: inline, a crash would repeat it")
        if self.business_key and not self.connector:
            raise UsageError("a business_key requires a connector: it is unique within one")
        if self.compensate is not None:
            compensators.add(self.compensate)


@dataclass(frozen=True, slots=True)
class EffectCall:
    """A tool and its arguments."""

    tool: Tool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def request(self) -> JsonValue:
        return {"args": list(self.args), "kwargs": self.kwargs}

    @property
    def compensation(self) -> Compensation | None:
        inverse = self.tool.compensate
        if inverse is None:
            return None
        return Compensation(
            kind=inverse.__name__, payload_json=codec.encode(self.request), compensator_ref=reference(inverse)
        )

    @property
    def business_key(self) -> str:
        key = self.tool.business_key
        return key if isinstance(key, str) else key(*self.args, **self.kwargs)

    def of(self, function: Function) -> Callable[[], Any]:
        return partial(function, *self.args, **self.kwargs)


def effect(
    compensate: Function | None = None,
    status_check: Function | None = None,
    *,
    name: str | None = None,
    stub: Function | None = None,
    retry: Retries = ONCE,
    semantics: Semantics = Semantics.IDEMPOTENT,
    dispatch: DispatchMode = DispatchMode.INLINE,
    connector: str = "",
    business_key: Callable[..., str] | str = "",
    scope: str = "",
    timeout: timedelta | float = DEADLINE,
) -> Callable[[Callable[P, Any]], Callable[P, Any]]:
    """Records a function's result in its run: it is called once, and later executions get the recorded result.

    `compensate(result, *args)` undoes it when the run fails. `status_check(*args)` is called when the outcome is
    unknown: it returns the result, or None if the call did not happen; if it raises, the outcome stays unknown. `stub`
    replaces the function in forks that suppress effects. Arguments and results are JSON. The outcome of a call that
    takes longer than `timeout` (default an hour; a number means seconds) is unknown.
    """

    def decorate(function: Callable[P, Any]) -> Callable[P, Any]:
        if not callable(function):
            raise UsageError("@tape.effect is written with its parentheses, as @tape.effect()")
        tool = Tool(
            function=function, name=name or function.__name__, compensate=compensate, status_check=status_check,
            stub=stub, retry=retry, semantics=Semantics(semantics), dispatch=DispatchMode(dispatch),
            connector=connector, business_key=business_key, scope=scope, timeout=check_deadline(timeout),
        )  # fmt: skip

        @wraps(function)
        async def perform(*args: P.args, **kwargs: P.kwargs) -> Any:
            return await perform_effect(current_run(), EffectCall(tool, args, kwargs))

        return step(perform)

    return decorate


async def perform_effect(context: RunContext, call: EffectCall) -> JsonValue:
    """The effect's result: the recorded one, or that of calling it now."""
    place = context.occurrence(f"effect {context.decision_index} {call.tool.name}")
    if context.policy.suppresses_effects:
        return await _suppressed(context, call, place)
    begun = await context.begin_effect(
        call.tool.name, call.request, call_index=place, semantics=call.tool.semantics, dispatch_mode=call.tool.dispatch,
        business_key=call.business_key, connector=call.tool.connector, scope=call.tool.scope,
        compensation=call.compensation,
    )  # fmt: skip
    return result_of(await _settled(context, call, begun))


def result_of(effect: Effect) -> JsonValue:
    if effect.status is not EffectStatus.CONFIRMED:
        raise failure(effect)
    return codec.decode(effect.response_json or "null")


async def _suppressed(context: RunContext, call: EffectCall, place: int) -> JsonValue:
    """The same in a fork that suppresses effects."""
    begun = await context.begin_effect(
        call.tool.name, call.request, call_index=place, semantics=Semantics.OBSERVE_ONLY, scope=call.tool.scope
    )
    if context.policy is EffectPolicy.REPLAY and begun.request_json not in ("", encode_optional(call.request)):
        raise context.refuse_other(call.tool.name)
    if begun.status is EffectStatus.PENDING:
        stub = None if call.tool.stub is None else call.of(call.tool.stub)
        begun = await complete_without_effect(context, begun, stub)
    return result_of(begun)


async def _settled(context: RunContext, call: EffectCall, begun: Effect) -> Effect:
    """The effect with its outcome, as far as it can be known."""
    if begun.is_settled:
        return begun
    if begun.status is EffectStatus.UNKNOWN:
        return await _looked_for(context, call, begun)
    if begun.run_id != context.run_id:
        raise Conflict(f"run {begun.run_id!r} is about to do the same business; come back when it has")
    if call.tool.dispatch is DispatchMode.OUTBOX:
        return await _dispatched(context, begun)
    if begun.idempotency_key in context.effects and call.tool.status_check is not None:
        return await _checked(context, call, begun)
    return await _done(context, call, begun)


async def _done(context: RunContext, call: EffectCall, begun: Effect) -> Effect:
    try:
        with with_key(begun.idempotency_key):
            result = await retried(
                call.tool.retry, partial(call_function, call.of(call.tool.function), call.tool.timeout)
            )
        response = codec.decode(codec.encode(result))
    except AckLost:
        return await _lost(context, call, begun)
    except StepRefused:
        raise  # the program is at fault, not the tool, so there is no outcome to record
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is what came of it
        error_text: JsonValue = {"type": type(error).__name__, "message": replace_unstorable(str(error))}
        return await complete(context, begun.idempotency_key, EffectStatus.FAILED, error=error_text)
    return await complete(context, begun.idempotency_key, EffectStatus.CONFIRMED, response=response)


async def _lost(context: RunContext, call: EffectCall, begun: Effect) -> Effect:
    """The outcome is unknown; a status check resolves it at once."""
    return await _looked_for(context, call, await complete(context, begun.idempotency_key, EffectStatus.UNKNOWN))


async def _checked(context: RunContext, call: EffectCall, begun: Effect) -> Effect:
    """An earlier worker left it pending: call it only if the status check says it did not happen."""
    try:
        result = await _look(call, begun)
    except StepRefused:
        raise
    except Exception:  # noqa: BLE001 - the outcome stays unknown
        return await complete(context, begun.idempotency_key, EffectStatus.UNKNOWN)
    if result is None:
        return await _done(context, call, begun)
    return await complete(context, begun.idempotency_key, EffectStatus.CONFIRMED, response=result)


async def _looked_for(context: RunContext, call: EffectCall, effect: Effect) -> Effect:
    """Checks an effect in doubt; it is never repeated, because its entry already says that it may have happened."""
    if call.tool.status_check is None or effect.run_id != context.run_id:
        return effect
    try:
        result = await _look(call, effect)
    except StepRefused:
        raise
    except Exception:  # noqa: BLE001 - the outcome stays unknown
        return effect
    status = EffectStatus.FAILED if result is None else EffectStatus.CONFIRMED
    error: JsonValue = {"type": "Absent", "message": "it did not take place"} if result is None else None
    key = effect.idempotency_key
    reconciling = context.node.effects.reconcile(context.run_id, key, status, response=result, error=error)
    return await first_recorded(context, key, reconciling)


async def _look(call: EffectCall, effect: Effect) -> JsonValue:
    assert call.tool.status_check is not None
    with with_key(effect.idempotency_key):
        result: JsonValue = await call_function(call.of(call.tool.status_check), call.tool.timeout)
    return result


async def _dispatched(context: RunContext, begun: Effect) -> Effect:
    """Waits for a dispatcher."""
    with context.waiting.wait() as is_left:
        while begun.status is EffectStatus.PENDING:
            context.steps.check()
            await sleep_unless_interrupted(is_left, POLL_S)
            begun = await context.node.effects.get(context.run_id, begun.idempotency_key) or begun
    return begun


async def mark_in_doubt(context: RunContext) -> None:
    """Marks every inline effect without an outcome as unknown."""
    for each in await context.node.effects.list_all(context.run_id):
        is_inline = each.dispatch_mode is DispatchMode.INLINE and each.semantics is not Semantics.OBSERVE_ONLY
        if is_inline and each.status is EffectStatus.PENDING:
            await complete(context, each.idempotency_key, EffectStatus.UNKNOWN)
