"""Deliveries of an outbox: rows are dealt out to handlers, claimed with a lease, and settled by the newest attempt."""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol

import anyio

from tape.core.errors import StaleClaim, TapeError
from tape.core.outbox import DEFAULT_RETRY_POLICY, OutboxEvent, RetryPolicy, Subscription, settled
from tape.core.task import Claim, Claimed, Died, Done, Outcome, Settlement, Task, TaskId, TaskStatus, Want
from tape.store import foreign
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.outbox_event import event_of

FILE: Final = "outbox.sql"
MOST_DEALT: Final = 500
CLAIM: Final = 5  # columns of a claim, before those of its event
BURIAL_S: Final = 1.0
_MS: Final = timedelta(milliseconds=1)


class OutboxDatabase(Protocol):
    """Where an outbox lives. A block of `own` raises our errors, one of `transaction` the driver's."""

    @property
    def dialect(self) -> str: ...
    @property
    def schema(self) -> str: ...
    def own(self) -> AbstractAsyncContextManager[Any]: ...
    def transaction(self) -> AbstractAsyncContextManager[Any]: ...


class Held(NamedTuple):
    """A delivery in hand."""

    event: OutboxEvent
    handler_name: str
    attempts: int
    is_handled: bool


class Deliveries:
    """The deliveries to some handlers of one generation, as a queue of work.

    An attempt whose handler wrote in our transaction is settled there by `finish`, and settling it again says nothing.
    """

    def __init__(
        self,
        database: OutboxDatabase,
        subscriptions: Sequence[Subscription],
        policies: Mapping[str, RetryPolicy],
    ) -> None:
        self._database = database
        self._subscriptions = subscriptions
        self._policies = policies
        (self._generation,) = {each.generation for each in subscriptions}
        self._held: dict[Claim, Held] = {}
        self._finished: set[Claim] = set()
        self._next_burial = 0.0

    async def register(self) -> None:
        """Makes the handlers known, and gives those that are new what was dealt out before."""
        rows = [_registration(each) for each in self._subscriptions]
        async with self._database.own() as connection:
            await self._run(connection, "alone")
            found = await self._run(connection, "register", subscriptions=json.dumps(rows))
            new = {name for name, is_new in found if is_new}
            for skips_past in (False, True):
                names = [each.handler_name for each in self._subscriptions if each.skips_past is skips_past]
                await self._catch_up(connection, sorted(new.intersection(names)), skips_past)

    async def _catch_up(self, connection: object, handlers: list[str], is_pending_only: bool) -> None:
        asked = {"handlers": json.dumps(handlers), "is_pending_only": is_pending_only}
        rows = await self._run(connection, "catch_up", **asked) if handlers else []
        if rows:
            ids = json.dumps([event_id for (event_id,) in rows])
            await self._run(connection, "dealt", ids=ids, taken=ids)

    async def claim(self, want: Want) -> Claimed:
        handlers = json.dumps(list(want.reaction_ids))
        async with self._database.own() as connection:
            await self._deal(connection)
            if anyio.current_time() >= self._next_burial:
                await self._bury(connection, handlers)
            asked = {"handlers": handlers, "most": want.most, "owner": want.owner, "lease_ms": want.lease // _MS}
            rows = await self._run(connection, "claim", **asked)
            if not rows:
                ((soon,),) = await self._run(connection, "soon", handlers=handlers)
                return Claimed((), None if soon is None else max(int(soon), 0) * _MS)
            if self._database.dialect == "sqlite":  # which cannot say more of what it changes
                rows = await self._completed(connection, rows, handlers)
        claims = [(row[:CLAIM], row[CLAIM:-1], row[-1]) for row in sorted(rows, key=_place)]
        return Claimed([task for claim in claims if (task := await self._hold(*claim, want.owner))])

    async def _completed(self, connection: object, rows: Sequence[Row], handlers: str) -> list[Row]:
        """What was claimed, with the event of each and whether it was handled before."""
        ids = json.dumps([row[0] for row in rows])
        events = {row[0]: row for row in await self._run(connection, "events", ids=ids)}
        handled = set(await self._run(connection, "handled", ids=ids, handlers=handlers))
        return [(*row, *events[row[0]], row[:2] in handled) for row in rows]

    def held(self, claim: Claim) -> Held:
        return self._held[claim]

    async def begin(self, connection: object, held: Held) -> bool:
        """Whether a handler is the first to handle an event; whoever comes at the same time waits to know."""
        return bool(await self._run(connection, "handle", handled=_keys([held])))

    async def finish(self, connection: object, claim: Claim) -> None:
        """Settles an attempt as done in a transaction that is under way."""
        if not await self._settle(connection, {claim: Done()}):
            raise StaleClaim(f"attempt {claim.attempt} of {claim.task_id!r} is not {claim.owner!r}'s any more")
        self._finished.add(claim)

    def unfinish(self, claim: Claim) -> None:
        """The transaction that finished it was not committed."""
        self._finished.discard(claim)

    async def extend(self, claims: Sequence[Claim], lease: timedelta) -> Sequence[StaleClaim | None]:
        asked = {"claims": json.dumps([_named(claim) for claim in claims]), "lease_ms": lease // _MS}
        async with self._database.own() as connection:
            rows = await self._run(connection, "extend", **asked)
        return self._told(claims, {_task_id(*row) for row in rows})

    async def settle(self, settlements: Sequence[Settlement]) -> Sequence[StaleClaim | None]:
        open_ones = {claim: outcome for claim, outcome in settlements if claim not in self._finished}
        settled_ones: set[TaskId] = {claim.task_id for claim, _ in settlements if claim in self._finished}
        if open_ones:
            async with self._database.own() as connection:
                done = [claim for claim, outcome in open_ones.items() if isinstance(outcome, Done)]
                if handled := [self._held[claim] for claim in done if claim in self._held]:
                    await self._run(connection, "handle", handled=_keys(handled))
                settled_ones |= await self._settle(connection, open_ones)
        answers = self._told([claim for claim, _ in settlements], settled_ones)
        for claim, _ in settlements:
            self._finished.discard(claim)
            self._held.pop(claim, None)
        return answers

    def _told(self, claims: Sequence[Claim], ours: set[TaskId]) -> list[StaleClaim | None]:
        for claim in claims:
            if claim.task_id not in ours:
                self._held.pop(claim, None)
        return [None if each.task_id in ours else StaleClaim(f"{each.task_id} is handled elsewhere") for each in claims]

    async def _deal(self, connection: object) -> None:
        """Gives new rows to all handlers they are for, also to those of other processes."""
        if self._database.dialect == "postgres":
            await self._run(connection, "deal", most=MOST_DEALT)
            return
        rows = await self._run(connection, "take", most=MOST_DEALT)
        if not rows:
            return
        ids = json.dumps([event_id for (event_id,) in rows])
        taken = {event_id for (event_id,) in await self._run(connection, "deal", ids=ids)}
        await self._run(connection, "dealt", ids=ids, taken=json.dumps(sorted(taken)))

    async def _bury(self, connection: object, handlers: str) -> None:
        self._next_burial = anyio.current_time() + BURIAL_S
        rows = await self._run(connection, "bury", handlers=handlers)
        if rows:
            await self._run(connection, "summarise", ids=json.dumps([event_id for (event_id,) in rows]))

    async def _hold(self, row: Row, event: Row, is_handled: bool, owner: str) -> Task | None:
        """The delivery as a task; a row that is no event fails alone."""
        event_id, handler_name, attempt, attempts, _ = row
        claim = Claim(_task_id(event_id, handler_name), owner, attempt)
        try:
            held = self._held[claim] = Held(event_of(event), handler_name, attempts, is_handled)
        except (TapeError, ValueError) as error:
            await self.settle([Settlement(claim, Died(f"the row is no event: {error}"))])
            return None
        return _task(claim, held)

    async def _settle(self, connection: object, outcomes: Mapping[Claim, Outcome]) -> set[TaskId]:
        rows = [{**_named(claim), **self._after(claim, outcome)} for claim, outcome in outcomes.items()]
        ids = json.dumps(sorted({row["event_id"] for row in rows}))
        ours = await self._run(connection, "settle", settled=json.dumps(rows))
        if self._database.dialect == "sqlite":  # which has no function that does both
            await self._run(connection, "summarise", ids=ids)
        return {_task_id(*row) for row in ours}

    def _after(self, claim: Claim, outcome: Outcome) -> dict[str, object]:
        held = self._held.get(claim)
        policy = self._policies.get(held.handler_name, DEFAULT_RETRY_POLICY) if held else DEFAULT_RETRY_POLICY
        after = settled(outcome, held.attempts if held else 1, policy, random.random())
        return {"status": after.status, "error": after.error, "after_ms": after.after // _MS}

    async def _run(self, connection: object, name: str, **asked: object) -> list[Row]:
        parameters = {"generation": self._generation, "now_ms": now_ms(), **asked}
        return await foreign.run(connection, FILE, name, parameters, self._database.schema)


def _registration(each: Subscription) -> dict[str, object]:
    return {
        "handler_name": each.handler_name,
        "generation": each.generation,
        "channel": each.channel,
        "event_types": list(each.event_types) or None,
        "target": each.target,
        "is_ordered": each.is_ordered,
        "max_attempts": each.max_attempts,
    }


def _task_id(event_id: str, handler_name: str) -> TaskId:
    return TaskId(f"{handler_name}:{event_id}")


def _named(claim: Claim) -> dict[str, str | int]:
    handler_name, _, event_id = claim.task_id.rpartition(":")
    return {"event_id": event_id, "handler_name": handler_name, "owner": claim.owner, "attempt": claim.attempt}


def _place(row: Row) -> int:
    return int(row[4])


def _task(claim: Claim, held: Held) -> Task:
    """As the one loop knows work; what the handler is given is the event itself."""
    event = held.event
    return Task(
        task_id=claim.task_id,
        reaction_id=held.handler_name,
        shard=0,
        source_run_id="",
        source_seq=0,
        source_global_seq=0,
        kind="event",
        type=event.event_type,
        subject="",
        schema_version=event.event_version,
        ts_ms=int(event.occurred_at.timestamp() * 1000),
        payload_json=event.payload_json,
        prev_value_json="",
        status=TaskStatus.CLAIMED,
        attempt=claim.attempt,
        attempts=held.attempts,
        next_attempt_at_ms=0,
        lease_owner=claim.owner,
        lease_expires_at_ms=0,
        last_error="",
        coalesced=0,
        created_at_ms=0,
        completed_at_ms=0,
        trace_id=event.span[0],
        span_id=event.span[1],
    )


def _keys(held: Sequence[Held]) -> str:
    pairs = {(each.handler_name, each.event.idempotency_key) for each in held}
    return json.dumps([{"handler_name": name, "idempotency_key": key} for name, key in sorted(pairs)])
