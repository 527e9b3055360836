"""Deliveries of an outbox: claimed with a lease, and settled by the newest attempt."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from tape.core.errors import StaleClaim, TapeError, Unavailable
from tape.core.outbox import DEFAULT_RETRY_POLICY, HandlerSubscription, OutboxEvent, RetryPolicy, settled
from tape.core.task import Claimed, ClaimRequest, Died, Done, Outcome, Settlement, Task, TaskClaim, TaskId, TaskStatus
from tape.store import caller_connection
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.event import event_of
from tape.telemetry import log

FILE: Final = "outbox.sql"
MIN_FAN_OUT: Final = 32  # rows at a time, so that a listener with few slots does not fan out one by one
CLAIM: Final = 5  # columns of a claim, before those of its event
EXPIRY_S: Final = 1.0
ANSWER_S: Final = 30.0  # half a lease; then the connection is given up and the statement is sent again
_MS: Final = timedelta(milliseconds=1)

Attempt: TypeAlias = tuple[TaskId, int]


class ClaimedDelivery(NamedTuple):
    """The event of a claim, and what is known of its delivery."""

    event: OutboxEvent
    handler_name: str
    attempts: int
    is_handled: bool


class Deliveries:
    """The deliveries to some handlers of one generation, as a queue of work.

    `finish` settles an attempt in the transaction of its handler; to settle it again then changes nothing.
    """

    def __init__(
        self,
        database: OutboxDatabase,
        subscriptions: Sequence[HandlerSubscription],
        policies: Mapping[str, RetryPolicy],
        *,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._database = database
        self._policies = policies
        (self._generation,) = {each.generation for each in subscriptions}
        self._versions = json.dumps([each.version for each in subscriptions])
        self._claimed: dict[TaskClaim, ClaimedDelivery] = {}
        self._finished: set[TaskClaim] = set()
        self._next_expiry = 0.0
        self._answer_s = answer_s

    async def claim(self, request: ClaimRequest) -> Claimed:
        asked = {
            "handlers": json.dumps(list(request.reaction_ids)),
            "versions": self._versions,
            "owner": request.owner,
            "lease_ms": request.lease_ms,
            "most": request.limit,
            "min_fan_out": MIN_FAN_OUT,
            "expires": self._is_expiry_due(),
        }
        with _answered(self._answer_s):
            async with self._database.once() as connection:
                rows = await self._database.steps.claim(partial(self._run, connection), asked)
                if not rows:
                    ((soon,),) = await self._run(connection, "soon", handlers=asked["handlers"])
                    return Claimed((), None if soon is None else max(int(soon), 0) * _MS)
        claimed = [self._hold(row, request.owner) for row in sorted(rows, key=_place)]
        await self._fail_unreadable([each for each in claimed if isinstance(each, Settlement)])
        return Claimed([each for each in claimed if isinstance(each, Task)])

    def _is_expiry_due(self) -> bool:
        now = anyio.current_time()
        if now < self._next_expiry:
            return False
        self._next_expiry = now + EXPIRY_S
        return True

    def claimed(self, claim: TaskClaim) -> ClaimedDelivery:
        return self._claimed[claim]

    async def begin(self, connection: object, delivery: ClaimedDelivery) -> bool:
        """Whether the handler has not handled the event before; waits for another attempt that is in progress."""
        handled = {"handler_name": delivery.handler_name, "idempotency_key": delivery.event.idempotency_key}
        return bool(await self._run(connection, "handle", handled=json.dumps([handled])))

    async def finish(self, connection: object, claim: TaskClaim) -> None:
        """Settles an attempt as done in a transaction that is under way."""
        if not await self._settle(connection, [_named(claim) | self._after(claim, Done())]):
            raise StaleClaim(f"attempt {claim.attempt} of {claim.task_id!r} is not {claim.owner!r}'s any more")
        self._finished.add(claim)

    def unfinish(self, claim: TaskClaim) -> None:
        """Takes `finish` back: its transaction was not committed."""
        self._finished.discard(claim)

    async def extend(self, claims: Sequence[TaskClaim], lease: timedelta) -> Sequence[StaleClaim | None]:
        asked = {"claims": json.dumps([_named(claim) for claim in claims]), "lease_ms": lease // _MS}
        with _answered(self._answer_s):
            async with self._database.once() as connection:
                rows = await self._run(connection, "extend", **asked)
        return self._stale(claims, set(map(_attempt, rows)))

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        ours = {(claim.task_id, claim.attempt) for claim, _ in settlements if claim in self._finished}
        rows = [self._settlement(*each) for each in settlements if each.claim not in self._finished]
        if rows:
            with _answered(self._answer_s):
                async with self._database.once() as connection:
                    ours |= await self._settle(connection, rows)
        answers = self._stale([claim for claim, _ in settlements], ours)
        for claim, _ in settlements:
            self._finished.discard(claim)
            self._claimed.pop(claim, None)
        return answers

    def _settlement(self, claim: TaskClaim, outcome: Outcome) -> dict[str, Any]:
        """A settlement as a row, with the key that is to be recorded as handled."""
        delivery = self._claimed.get(claim)
        key = delivery.event.idempotency_key if delivery and isinstance(outcome, Done) else None
        return _named(claim) | self._after(claim, outcome) | {"idempotency_key": key}

    def _stale(self, claims: Sequence[TaskClaim], ours: set[Attempt]) -> list[StaleClaim | None]:
        lost = [claim for claim in claims if (claim.task_id, claim.attempt) not in ours]
        for claim in lost:
            self._claimed.pop(claim, None)
        return [StaleClaim(f"{each.task_id} is handled elsewhere") if each in lost else None for each in claims]

    def _hold(self, row: Row, owner: str) -> Task | Settlement:
        """The delivery as a task; a row that is no event becomes its failure."""
        (event_id, handler_name, attempt, attempts, _), event, is_handled = row[:CLAIM], row[CLAIM:-1], row[-1]
        claim = TaskClaim(_task_id(event_id, handler_name), owner, attempt)
        try:
            delivery = self._claimed[claim] = ClaimedDelivery(event_of(event), handler_name, attempts, is_handled)
        except (TapeError, ValueError) as error:
            return Settlement(claim, Died(f"the row is no event: {error}"))
        return _task(claim, delivery)

    async def _fail_unreadable(self, settlements: Sequence[Settlement]) -> None:
        """Settles rows that are no events as dead; if that fails, they come again when their lease ends."""
        try:
            if settlements:
                await self.settle(settlements)
        except TapeError as error:
            log.warning("queue.unavailable", reason=str(error))

    async def _settle(self, connection: object, rows: Sequence[Mapping[str, Any]]) -> set[Attempt]:
        newest = await self._database.steps.settle(partial(self._run, connection), rows)
        return set(map(_attempt, newest))

    def _after(self, claim: TaskClaim, outcome: Outcome) -> dict[str, object]:
        delivery = self._claimed.get(claim)
        policy = self._policies.get(delivery.handler_name, DEFAULT_RETRY_POLICY) if delivery else DEFAULT_RETRY_POLICY
        after = settled(outcome, delivery.attempts if delivery else 1, policy, random.random())
        return {
            "status": after.status,
            "error": after.error,
            "after_ms": after.after // _MS,
            "is_released": after.is_released,
            "idempotency_key": None,
        }

    async def _run(self, connection: object, name: str, **asked: object) -> list[Row]:
        parameters = {"generation": self._generation, "now_ms": now_ms(), **asked}
        return await caller_connection.execute(connection, FILE, name, parameters, self._database.schema)


@contextmanager
def _answered(within_s: float) -> Iterator[None]:
    try:
        with anyio.fail_after(within_s):
            yield
    except TimeoutError as error:
        raise Unavailable(f"the outbox's database gave no answer within {within_s:g} s", "unknown") from error


def _task_id(event_id: str, handler_name: str) -> TaskId:
    return TaskId(f"{handler_name}:{event_id}")


def _attempt(row: Row) -> Attempt:
    event_id, handler_name, attempt = row
    return _task_id(event_id, handler_name), attempt


def _named(claim: TaskClaim) -> dict[str, Any]:
    handler_name, _, event_id = claim.task_id.rpartition(":")
    return {"event_id": event_id, "handler_name": handler_name, "owner": claim.owner, "attempt": claim.attempt}


def _place(row: Row) -> int:
    return int(row[4])


def _task(claim: TaskClaim, delivery: ClaimedDelivery) -> Task:
    """The delivery as the worker knows tasks; its handler gets the event itself."""
    event = delivery.event
    return Task(
        task_id=claim.task_id,
        reaction_id=delivery.handler_name,
        kind="event",
        type=event.event_type,
        schema_version=event.event_version,
        ts_ms=int(event.occurred_at.timestamp() * 1000),
        payload_json=event.payload_json,
        status=TaskStatus.CLAIMED,
        attempt=claim.attempt,
        attempts=delivery.attempts,
        lease_owner=claim.owner,
        trace_id=event.span[0],
        span_id=event.span[1],
    )
