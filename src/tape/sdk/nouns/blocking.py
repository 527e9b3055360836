"""The nouns for programs without async: the same methods, run on one event loop in a thread of their own."""

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Concatenate, Generic, ParamSpec, Protocol, Self, TypedDict, TypeVar, Unpack

from tape.core.caller import PLAIN, Caller
from tape.core.event import Entry
from tape.core.value import ValueChange
from tape.operations.operation import OperationRequest
from tape.sdk.nouns import (
    budgets,
    decisions,
    effects,
    events,
    gates,
    obligations,
    outbox,
    reactions,
    runs,
    sessions,
    tasks,
    timers,
    values,
)
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.portal import Portal

P = ParamSpec("P")
N = TypeVar("N")
T = TypeVar("T")
C = TypeVar("C", covariant=True)


class FollowOptions(TypedDict, total=False):
    """Which entries to follow."""

    run_id: str | None
    from_seq: int
    subject: str | None
    where: str | None
    from_global_seq: int
    follow: bool


class Noun(Generic[N]):
    """A noun whose methods are waited for."""

    def __init__(self, portal: Portal, noun: N) -> None:
        self.portal = portal
        self.noun = noun


def waiting(method: Callable[Concatenate[N, P], Awaitable[T]]) -> Callable[Concatenate[Noun[N], P], T]:
    """A method of the async noun, for a program that waits."""

    @wraps(method)
    def call(noun: Noun[N], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return noun.portal.call(partial(method, noun.noun, *args, **kwargs))

    return call


class Runs(Noun[runs.Runs]):
    open = waiting(runs.Runs.open)
    close = waiting(runs.Runs.close)
    reap = waiting(runs.Runs.reap)
    list = waiting(runs.Runs.list)
    show = waiting(runs.Runs.show)
    fork = waiting(runs.Runs.fork)
    diff = waiting(runs.Runs.diff)
    begin = waiting(runs.Runs.begin)
    take = waiting(runs.Runs.take)
    heartbeat = waiting(runs.Runs.heartbeat)
    end = waiting(runs.Runs.end)
    cancel = waiting(runs.Runs.cancel)
    get = waiting(runs.Runs.get)
    newest = waiting(runs.Runs.newest)
    to_recover = waiting(runs.Runs.to_recover)
    compactable = waiting(runs.Runs.compactable)
    compact = waiting(runs.Runs.compact)


class Decisions(Noun[decisions.Decisions]):
    record = waiting(decisions.Decisions.record)
    get = waiting(decisions.Decisions.get)
    list_all = waiting(decisions.Decisions.list_all)
    list = waiting(decisions.Decisions.list)


class Effects(Noun[effects.Effects]):
    begin = waiting(effects.Effects.begin)
    complete = waiting(effects.Effects.complete)
    reconcile = waiting(effects.Effects.reconcile)
    retry = waiting(effects.Effects.retry)
    get = waiting(effects.Effects.get)
    list_all = waiting(effects.Effects.list_all)
    list = waiting(effects.Effects.list)
    in_doubt = waiting(effects.Effects.in_doubt)


class Dispatch(Noun[effects.Dispatch]):
    due = waiting(effects.Dispatch.due)
    claim = waiting(effects.Dispatch.claim)
    attempt = waiting(effects.Dispatch.attempt)
    observe = waiting(effects.Dispatch.observe)
    mark_lost_in_doubt = waiting(effects.Dispatch.mark_lost_in_doubt)


class Obligations(Noun[obligations.Obligations]):
    register = waiting(obligations.Obligations.register)
    get = waiting(obligations.Obligations.get)
    list_all = waiting(obligations.Obligations.list_all)
    list = waiting(obligations.Obligations.list)
    due = waiting(obligations.Obligations.due)
    stuck = waiting(obligations.Obligations.stuck)
    claim = waiting(obligations.Obligations.claim)
    attempt = waiting(obligations.Obligations.attempt)
    resolve = waiting(obligations.Obligations.resolve)
    retry = waiting(obligations.Obligations.retry)


class Gates(Noun[gates.Gates]):
    wait = waiting(gates.Gates.wait)
    send = waiting(gates.Gates.send)
    send_to_session = waiting(gates.Gates.send_to_session)
    get = waiting(gates.Gates.get)
    list_all = waiting(gates.Gates.list_all)
    list = waiting(gates.Gates.list)


class Timers(Noun[timers.Timers]):
    set = waiting(timers.Timers.set)
    cancel = waiting(timers.Timers.cancel)
    get = waiting(timers.Timers.get)
    list_all = waiting(timers.Timers.list_all)
    list = waiting(timers.Timers.list)
    due = waiting(timers.Timers.due)
    claim = waiting(timers.Timers.claim)
    fire = waiting(timers.Timers.fire)


class Budgets(Noun[budgets.Budgets]):
    set = waiting(budgets.Budgets.set)
    admit = waiting(budgets.Budgets.admit)
    reserve = waiting(budgets.Budgets.reserve)
    settle = waiting(budgets.Budgets.settle)
    charge = waiting(budgets.Budgets.charge)
    get = waiting(budgets.Budgets.get)


class Stream(Protocol[C]):
    """What comes one by one, and must be closed."""

    def __anext__(self) -> Awaitable[C]: ...
    def aclose(self) -> Awaitable[None]: ...


class BlockingStream(Generic[T]):
    """What comes one by one, each waited for."""

    def __init__(self, portal: Portal, watch: Stream[T]) -> None:
        self._portal = portal
        self._watch = watch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self._portal.call(self._watch.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._portal.call(self._watch.aclose)


class Values(Noun[values.Values]):
    set = waiting(values.Values.set)
    get = waiting(values.Values.get)
    newest = waiting(values.Values.newest)
    delete = waiting(values.Values.delete)
    list_all = waiting(values.Values.list_all)
    list = waiting(values.Values.list)
    history = waiting(values.Values.history)

    def watch(self, namespace: str, name: str, from_version: int | None = None) -> BlockingStream[ValueChange]:
        """What is known now and every version after it; or every version after the one that is named."""
        return BlockingStream(self.portal, self.portal.call(self.noun.watch, namespace, name, from_version))


class Events(Noun[events.Events]):
    append = waiting(events.Events.append)
    list = waiting(events.Events.list)
    _stream = waiting(events.Events.stream)

    def stream(self, **options: Unpack[FollowOptions]) -> BlockingStream[Entry]:
        """Entries in order, once each: first what there is, then what comes; a run's end with it."""
        return BlockingStream(self.portal, self._stream(**options))


class Sessions(Noun[sessions.Sessions]):
    create = waiting(sessions.Sessions.create)
    append = waiting(sessions.Sessions.append)
    get = waiting(sessions.Sessions.get)
    list_all = waiting(sessions.Sessions.list_all)
    list = waiting(sessions.Sessions.list)
    delete = waiting(sessions.Sessions.delete)


class Reactions(Noun[reactions.Reactions]):
    register = waiting(reactions.Reactions.register)
    list = waiting(reactions.Reactions.list)
    get = waiting(reactions.Reactions.get)
    pause = waiting(reactions.Reactions.pause)
    resume = waiting(reactions.Reactions.resume)
    remove = waiting(reactions.Reactions.remove)
    explain = waiting(reactions.Reactions.explain)


class Tasks(Noun[tasks.Tasks]):
    list = waiting(tasks.Tasks.list)
    get = waiting(tasks.Tasks.get)
    replay = waiting(tasks.Tasks.replay)
    claim = waiting(tasks.Tasks.claim)
    extend = waiting(tasks.Tasks.extend)
    complete = waiting(tasks.Tasks.complete)
    nack = waiting(tasks.Tasks.nack)


class Outbox(Noun[outbox.Outbox]):
    list = waiting(outbox.Outbox.list)
    get = waiting(outbox.Outbox.get)
    stats = waiting(outbox.Outbox.stats)
    replay = waiting(outbox.Outbox.replay)
    hand_over = waiting(outbox.Outbox.hand_over)
    retain = waiting(outbox.Outbox.retain)


class Node:
    """The same nouns as `AsyncNode` has, for a program that waits."""

    def __init__(self, portal: Portal, node: AsyncNode) -> None:
        self.events = Events(portal, node.events)
        self.runs = Runs(portal, node.runs)
        self.decisions = Decisions(portal, node.decisions)
        self.effects = Effects(portal, node.effects)
        self.dispatch = Dispatch(portal, node.dispatch)
        self.obligations = Obligations(portal, node.obligations)
        self.gates = Gates(portal, node.gates)
        self.timers = Timers(portal, node.timers)
        self.budgets = Budgets(portal, node.budgets)
        self.values = Values(portal, node.values)
        self.sessions = Sessions(portal, node.sessions)
        self.reactions = Reactions(portal, node.reactions)
        self.tasks = Tasks(portal, node.tasks)
        self.outbox = Outbox(portal, node.outbox)
        self._portal = portal
        self._node = node

    def call(self, request: OperationRequest[T], caller: Caller = PLAIN) -> T:
        """Runs an operation by its request; the nouns have a method for each."""
        return self._portal.call(partial(self._node.call, request, caller))
