"""The registered reactions, and the progress of matching."""

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Final, NamedTuple

from tape.core import codec
from tape.core.errors import NotFound
from tape.core.event import Event
from tape.core.ids import GlobalSeq
from tape.core.matched import MatchCursor, MatchedPage, ReactionRecord, Recorded
from tape.core.ports import Transaction
from tape.core.predicate.predicate import Predicate
from tape.core.reaction import HandlerKind, Reaction
from tape.core.registration import QUARANTINED, ReactionState, Verb, check_reason, defined, paused, removed
from tape.core.sequence import AppendRequest
from tape.core.task import DEREGISTERED
from tape.store.clock import now_ms
from tape.store.connection import Connection, Query, Row
from tape.store.match_claims import MatchClaims
from tape.store.matched_tasks import MatchedTasks
from tape.store.statements import statements

_EVERY: Final = 1 << 62


class _Sql(NamedTuple):
    lock_match_cursor: str
    head: str
    found: str
    listed: str
    put: str
    put_limit: str
    reshard: str
    mark: str
    match_cursor: str
    states: str
    move_match_cursor: str
    put_states: str
    add_predicate_errors: str
    lock_tasks: str


class Reactions:
    """The registered reactions, and how far they have been matched.

    Registering and matching lock the match cursor first, so they exclude each other.
    """

    def __init__(self, connection: Connection, dialect: str, claims: MatchClaims) -> None:
        self._connection = connection
        self._sql = _Sql(**statements(dialect, "reactions.sql"))
        self._claims = claims
        self._tasks = MatchedTasks(dialect, claims)

    async def register(self, reaction: Reaction) -> ReactionRecord:
        Predicate(reaction.predicate_cel)  # raises if it is not valid
        async with self._connection.transaction() as tx:
            known = await self._locked(tx, reaction.reaction_id)
            event = _registering(known, reaction)
            if event is not None:
                await self._put(tx, known, reaction)
                _stage(tx, event)
            return await self._known(tx, reaction.reaction_id)

    async def remove(self, reaction_id: str) -> bool:
        async with self._connection.transaction() as tx:
            known = await self._locked(tx, reaction_id)
            if known is None or known.is_removed:
                return False
            await tx.fetch(self._sql.mark, {"reaction_id": reaction_id, "paused": "", "deleted": 1})
            ended = await self._tasks.end_pending(tx, reaction_id, DEREGISTERED)
            _stage(tx, removed(reaction_id, ended))
            return True

    async def pause(self, reaction_id: str, reason: str) -> ReactionRecord:
        check_reason(reason)
        async with self._connection.transaction() as tx:
            known = await self._living(tx, reaction_id)
            if not known.paused:
                await tx.fetch(self._sql.mark, {"reaction_id": reaction_id, "paused": reason, "deleted": 0})
                _stage(tx, paused(reaction_id, reason))
            return await self._known(tx, reaction_id)

    async def resume(self, reaction_id: str) -> ReactionRecord:
        async with self._connection.transaction() as tx:
            known = await self._living(tx, reaction_id)
            if known.paused:
                await tx.fetch(self._sql.mark, {"reaction_id": reaction_id, "paused": "", "deleted": 0})
                _stage(tx, defined(Verb.CHANGED, known.reaction))
            return await self._known(tx, reaction_id)

    async def find(self, reaction_id: str) -> ReactionRecord | None:
        (rows,) = await self._connection.snapshot(Query(self._sql.found, {"reaction_id": reaction_id}))
        return _record(rows[0]) if rows else None

    async def listed(
        self, subject_pattern: str = "", limit: int | None = None, after: str = ""
    ) -> Sequence[ReactionRecord]:
        asked = {"subject_pattern": subject_pattern, "limit": _EVERY if limit is None else limit, "after": after}
        (rows,) = await self._connection.snapshot(Query(self._sql.listed, asked))
        return [_record(row) for row in rows]

    async def match_cursor(self, seen: int) -> MatchCursor:
        queries = Query(self._sql.match_cursor), Query(self._sql.states, {"seen": seen})
        ((version, cursor),), rows = await self._connection.snapshot(*queries)
        states = {reaction_id: replace(_state(text), cursor=own) for reaction_id, own, text in rows}
        return MatchCursor(version, cursor, states)

    async def record(self, page: MatchedPage) -> Recorded | None:
        """Records a page; None if the match cursor has moved since the version the page was decided on."""
        if page.claim is not None and page.is_plain:
            result = await self._claims.record(page, page.claim)
            if result.is_done:
                return result.recorded
        async with self._connection.transaction() as tx:
            place = {"seen": page.version, "epoch": page.epoch, "cursor": page.cursor, "now_ms": now_ms()}
            moved = await tx.fetch(self._sql.move_match_cursor, place)
            if not moved:
                return None
            ((version, now),) = moved
            claimed = await self._tasks.add(tx, page.matches, now, page.claim)
            await self._put_page(tx, page, version)
            for request in page.requests:
                tx.append(request)
        return Recorded(int(version), claimed)

    async def _put_page(self, tx: Transaction, page: MatchedPage, version: int) -> None:
        if page.states:
            rows = [_state_row(reaction_id, state) for reaction_id, state in page.states.items()]
            await tx.fetch(self._sql.put_states, {"states": json.dumps(rows), "version": version})
        for reaction_id, state in page.states.items():
            if state.is_removed:  # tasks that were matched between the removal and its entry
                await self._tasks.end_pending(tx, reaction_id, DEREGISTERED)
        if page.predicate_errors:
            predicate_errors = [
                {"reaction_id": name, **errors._asdict()} for name, errors in page.predicate_errors.items()
            ]
            await tx.fetch(self._sql.add_predicate_errors, {"errors": json.dumps(predicate_errors)})

    async def _locked(self, tx: Transaction, reaction_id: str) -> ReactionRecord | None:
        await tx.fetch(self._sql.lock_match_cursor, {})
        rows = await tx.fetch(self._sql.found, {"reaction_id": reaction_id})
        return _record(rows[0]) if rows else None

    async def _living(self, tx: Transaction, reaction_id: str) -> ReactionRecord:
        known = await self._locked(tx, reaction_id)
        if known is None or known.is_removed:
            raise NotFound(f"there is no reaction {reaction_id!r}")
        return known

    async def _known(self, tx: Transaction, reaction_id: str) -> ReactionRecord:
        (row,) = await tx.fetch(self._sql.found, {"reaction_id": reaction_id})
        return _record(row)

    async def _put(self, tx: Transaction, known: ReactionRecord | None, reaction: Reaction) -> None:
        ((head,),) = await tx.fetch(self._sql.head, {})
        own_cursor = head if reaction.bootstrap_from_head else 0
        await tx.fetch(self._sql.put, {**_row(reaction), "own_cursor": own_cursor, "now_ms": now_ms()})
        await tx.fetch(self._sql.put_limit, {"reaction_id": reaction.reaction_id})
        if known is not None and known.reaction.num_shards != reaction.num_shards:
            await tx.fetch(self._sql.lock_tasks, {})
            shards = {"reaction_id": reaction.reaction_id, "num_shards": reaction.num_shards}
            await tx.fetch(self._sql.reshard, shards)


def _registering(known: ReactionRecord | None, reaction: Reaction) -> Event | None:
    """The event of a registration; None if nothing changes."""
    if known is None:
        return defined(Verb.REGISTERED, reaction)
    # Only the first registration uses bootstrap_from_head, so it does not count as a change.
    asked = replace(reaction, bootstrap_from_head=known.reaction.bootstrap_from_head)
    if known.is_removed:
        return defined(Verb.REGISTERED, asked)
    return None if asked == known.reaction else defined(Verb.CHANGED, asked, known.paused)


def _stage(tx: Transaction, event: Event) -> None:
    tx.append(AppendRequest(events=(event,), opens=True))


def _row(reaction: Reaction) -> dict[str, object]:
    definition = asdict(reaction)
    return {
        **definition,
        "handler_kind": int(reaction.handler_kind),
        "bootstrap_from_head": int(reaction.bootstrap_from_head),
    }


def _record(row: Row) -> ReactionRecord:
    """A record from the columns of a definition, in the order of its fields, and those of its progress."""
    names = [field.name for field in fields(Reaction)]
    definition = dict(zip(names, row, strict=False))
    definition["handler_kind"] = HandlerKind(definition["handler_kind"])
    definition["bootstrap_from_head"] = bool(definition["bootstrap_from_head"])
    created_at_ms, paused, deleted, cursor, errors, last_error = row[len(names) :]
    return ReactionRecord(
        reaction=Reaction(**definition),
        created_at_ms=created_at_ms,
        paused=paused,
        is_removed=bool(deleted),
        cursor=GlobalSeq(cursor),
        errors=errors,
        last_error=last_error,
    )


def _state(text: str) -> ReactionState:
    return codec.decode_state(text, ReactionState)


def _state_row(reaction_id: str, state: ReactionState) -> dict[str, object]:
    """The row of a state; only a quarantine sets `paused` here, every other pause was written when it was requested."""
    return {
        "reaction_id": reaction_id,
        "own_cursor": state.cursor,
        "state_json": codec.encode_state(state),
        "paused": QUARANTINED if state.paused == QUARANTINED else None,
    }
