"""What follows from the entries of a page, as far as it has been read: decided here, written elsewhere."""

from collections.abc import Mapping
from typing import Final

from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq
from tape.core.matched import MatchedPage, PredicateErrors
from tape.core.registration import QUARANTINED, REACTION, ReactionState, after, paused, subject_of
from tape.core.sequence import Request
from tape.core.task import MAX_DEPTH, ClaimRequest, Match
from tape.matcher.rules import Finding, Rule, Rules

MAX_MATCHES: Final = 2_000
MOST_BYTES: Final = 8 << 20
RULE_S: Final = 0.100  # who takes longer than this over a page goes on alone, so that nobody waits for it
PAGE_S: Final = 0.250


class MatchBatch:
    """A page in the making, decided on the version of the pack that was seen when it was begun.

    The rules follow it at once; whoever drops the draft has to put them back. Of the pack, the entries of
    registrations are applied as they are passed.
    """

    def __init__(
        self, rules: Rules, states: Mapping[str, ReactionState], *, seen: int, epoch: Epoch, is_pack: bool
    ) -> None:
        self.changed: dict[str, ReactionState] = {}
        self.matches: list[Match] = []
        self._seen = seen
        self._epoch = epoch
        self._rules = rules
        self._states = states
        self._is_pack = is_pack
        self._predicate_errors: dict[str, PredicateErrors] = {}
        self._requests: list[Request] = []
        self._spent: dict[str, float] = {}
        self._total = 0.0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self.matches) >= MAX_MATCHES or self._bytes >= MOST_BYTES or self._total >= PAGE_S

    @property
    def is_empty(self) -> bool:
        return not (self.matches or self.changed or self._predicate_errors)

    def take(self, entry: Entry) -> None:
        sure, asked = self._rules.of(entry)
        for rule in sure:
            self._add_match(rule, entry)
        for finding in self._rules.evaluated(asked, entry) if asked else ():
            self._note(entry, finding)
        if self._is_pack and entry.kind == REACTION:
            self._apply(entry)

    def page(self, cursor: GlobalSeq, claim: ClaimRequest | None = None) -> MatchedPage:
        """Everything so far; with it the pack is at the cursor."""
        return MatchedPage(
            seen=self._seen,
            epoch=self._epoch,
            cursor=cursor,
            states=self.changed,
            matches=self.matches,
            predicate_errors=self._predicate_errors,
            requests=self._requests,
            claim=claim,
        )

    def _note(self, entry: Entry, finding: Finding) -> None:
        reaction = finding.rule.reaction
        if finding.is_too_slow:
            self._quarantine(reaction.reaction_id, entry.global_seq - 1)
            return
        if finding.error is not None:
            before = self._predicate_errors.get(reaction.reaction_id, PredicateErrors(0, ""))
            self._predicate_errors[reaction.reaction_id] = PredicateErrors(before.errors + 1, finding.error)
        elif finding.matched:
            self._add_match(finding.rule, entry)
        if finding.seconds:
            self._charge(reaction.reaction_id, finding.seconds, entry.global_seq)

    def _add_match(self, rule: Rule, entry: Entry) -> None:
        if entry.depth <= MAX_DEPTH:
            self.matches.append(Match(rule.reaction, entry, entry.prev_value_json))
            self._bytes += entry.weight

    def _charge(self, reaction_id: str, seconds: float, place: int) -> None:
        self._total += seconds
        self._spent[reaction_id] = spent = self._spent.get(reaction_id, 0.0) + seconds
        if spent > RULE_S:
            self._leave(reaction_id, place)

    def _quarantine(self, reaction_id: str, cursor: int) -> None:
        """Paused before the entry, which is read again when it is resumed."""
        self._leave(reaction_id, cursor, QUARANTINED)
        event = paused(reaction_id, QUARANTINED, cursor)
        self._requests.append(Request(events=(event,), opens=True))

    def _leave(self, reaction_id: str, cursor: int, reason: str = "") -> None:
        state = self.changed.get(reaction_id) or self._states[reaction_id]
        self.changed[reaction_id] = state.stopped(cursor, reason) if self._is_pack else state.left(cursor, reason)
        self._rules.drop(reaction_id)

    def _apply(self, entry: Entry) -> None:
        reaction_id = subject_of(entry)
        if reaction_id is None:
            return
        state = after(self.changed.get(reaction_id) or self._states.get(reaction_id), entry)
        if state is not None:
            self.changed[reaction_id] = state
            self._rules.sort(reaction_id, state)
