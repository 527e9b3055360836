"""The matches of a page of entries, collected here and written by the matcher."""

from collections.abc import Mapping
from typing import Final

from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq
from tape.core.matched import MatchedPage, PredicateErrors
from tape.core.registration import QUARANTINED, REACTION, ReactionState, after, paused, subject_of
from tape.core.sequence import AppendRequest
from tape.core.task import MAX_DEPTH, ClaimRequest, Match
from tape.matcher.rules import Evaluation, Rule, Rules

MAX_MATCHES: Final = 2_000
MAX_BYTES: Final = 8 << 20
RULE_S: Final = 0.100  # a reaction that takes longer for a page is matched alone, so that no other waits for it
PAGE_S: Final = 0.250


class MatchBatch:
    """Matches entries, based on one version of the match cursor.

    It changes the rules at once: if the batch is not written, the caller restores them. For the caught-up reactions it
    also applies the registrations among the entries.
    """

    def __init__(
        self, rules: Rules, states: Mapping[str, ReactionState], *, version: int, epoch: Epoch, is_caught_up: bool
    ) -> None:
        self.changed: dict[str, ReactionState] = {}
        self.matches: list[Match] = []
        self._version = version
        self._epoch = epoch
        self._rules = rules
        self._states = states
        self._is_caught_up = is_caught_up
        self._predicate_errors: dict[str, PredicateErrors] = {}
        self._requests: list[AppendRequest] = []
        self._spent: dict[str, float] = {}
        self._total = 0.0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self.matches) >= MAX_MATCHES or self._bytes >= MAX_BYTES or self._total >= PAGE_S

    @property
    def is_empty(self) -> bool:
        return not (self.matches or self.changed or self._predicate_errors)

    def add(self, entry: Entry) -> None:
        certain, conditional = self._rules.find(entry)
        for rule in certain:
            self._add_match(rule, entry)
        for evaluation in self._rules.evaluate(conditional, entry) if conditional else ():
            self._add_evaluation(entry, evaluation)
        if self._is_caught_up and entry.kind == REACTION:
            self._apply(entry)

    def page(self, cursor: GlobalSeq, claim: ClaimRequest | None = None) -> MatchedPage:
        """What to write: the matches, and the states of the reactions that have changed."""
        return MatchedPage(
            version=self._version,
            epoch=self._epoch,
            cursor=cursor,
            states=self.changed,
            matches=self.matches,
            predicate_errors=self._predicate_errors,
            requests=self._requests,
            claim=claim,
        )

    def _add_evaluation(self, entry: Entry, evaluation: Evaluation) -> None:
        reaction = evaluation.rule.reaction
        if evaluation.is_too_slow:
            self._quarantine(reaction.reaction_id, entry.global_seq - 1)
            return
        if evaluation.error is not None:
            before = self._predicate_errors.get(reaction.reaction_id, PredicateErrors(0, ""))
            self._predicate_errors[reaction.reaction_id] = PredicateErrors(before.errors + 1, evaluation.error)
        elif evaluation.matched:
            self._add_match(evaluation.rule, entry)
        if evaluation.seconds:
            self._charge(reaction.reaction_id, evaluation.seconds, entry.global_seq)

    def _add_match(self, rule: Rule, entry: Entry) -> None:
        if entry.depth <= MAX_DEPTH:
            self.matches.append(Match(rule.reaction, entry, entry.prev_value_json))
            self._bytes += entry.weight

    def _charge(self, reaction_id: str, seconds: float, position: int) -> None:
        self._total += seconds
        self._spent[reaction_id] = spent = self._spent.get(reaction_id, 0.0) + seconds
        if spent > RULE_S:
            self._fall_behind(reaction_id, position)

    def _quarantine(self, reaction_id: str, cursor: int) -> None:
        """Pauses a reaction before an entry, which is matched again after the reaction is resumed."""
        self._fall_behind(reaction_id, cursor, QUARANTINED)
        event = paused(reaction_id, QUARANTINED, cursor)
        self._requests.append(AppendRequest(events=(event,), opens=True))

    def _fall_behind(self, reaction_id: str, cursor: int, reason: str = "") -> None:
        state = self.changed.get(reaction_id) or self._states[reaction_id]
        self.changed[reaction_id] = state.stopped(cursor, reason) if self._is_caught_up else state.left(cursor, reason)
        self._rules.remove(reaction_id)

    def _apply(self, entry: Entry) -> None:
        reaction_id = subject_of(entry)
        if reaction_id is None:
            return
        state = after(self.changed.get(reaction_id) or self._states.get(reaction_id), entry)
        if state is not None:
            self.changed[reaction_id] = state
            self._rules.update(reaction_id, state)
