"""The rules of reactions, indexed: patterns in a trie, predicates compiled once."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from tape.core.errors import UsageError
from tape.core.event import Entry
from tape.core.lifecycle import may_react
from tape.core.predicate.predicate import Activation, Predicate, Verdict, bind
from tape.core.reaction import Reaction
from tape.core.registration import ReactionState
from tape.core.subject import Pattern
from tape.core.trie import Trie

SLOW_S: Final = 0.050
NOTICED_S: Final = 0.005
MAX_SUBJECTS: Final = 4_096


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rule:
    """A version of a reaction and the positions that it matches: after `above`, up to and including `through`."""

    reaction: Reaction
    pattern: Pattern
    predicate: "Predicate | InvalidPredicate"
    above: int = 0
    through: int | None = None

    def is_for(self, global_seq: int) -> bool:
        return self.above < global_seq and (self.through is None or global_seq <= self.through)


class Evaluation(NamedTuple):
    """The result of a predicate for an entry: whether it matches, its error, and how long it took."""

    rule: Rule
    matched: bool
    error: str | None = None
    seconds: float = 0.0
    is_too_slow: bool = False


class SubjectRules(NamedTuple):
    """The rules whose patterns match a subject: without a predicate, with one, and whether positions limit any."""

    certain: Sequence[Rule]
    conditional: Sequence[Rule]
    is_limited: bool


class Clocks(Protocol):
    """The wall clock, and the CPU time of this thread."""

    def wall(self) -> float: ...
    def cpu(self) -> float: ...


class SystemClocks:
    """The clocks of this machine."""

    wall = staticmethod(time.perf_counter)
    cpu = staticmethod(time.thread_time)


class Rules:
    """The rules of the reactions that are matched together."""

    def __init__(self, clocks: Clocks | None = None) -> None:
        self._clocks = clocks or SystemClocks()
        self._trie: Trie[Rule] = Trie()
        self._rules: dict[str, Sequence[Rule]] = {}
        self._found: dict[str, SubjectRules] = {}

    def __contains__(self, reaction_id: str) -> bool:
        return reaction_id in self._rules

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, reaction_id: str, state: ReactionState) -> None:
        self.remove(reaction_id)
        self._found.clear()
        self._rules[reaction_id] = rules = list(_rules(state))
        for rule in rules:
            self._trie.add(rule.pattern, rule)

    def update(self, reaction_id: str, state: ReactionState | None) -> None:
        """Indexes a reaction that is active and caught up, else removes it."""
        if state is not None and state.is_matching and state.cursor is None:
            self.add(reaction_id, state)
        else:
            self.remove(reaction_id)

    def remove(self, reaction_id: str) -> None:
        for rule in self._rules.pop(reaction_id, ()):
            self._found.clear()
            self._trie.discard(rule.pattern, rule)

    def find(self, entry: Entry) -> tuple[Sequence[Rule], Sequence[Rule]]:
        """The rules that match an entry, and those that match it if their predicate does."""
        found = self._found.get(entry.subject) or self._find_subject(entry)
        if not found.is_limited:
            return found.certain, found.conditional
        certain, conditional = (
            [rule for rule in some if rule.is_for(entry.global_seq)] for some in (found.certain, found.conditional)
        )
        return certain, conditional

    def _find_subject(self, entry: Entry) -> SubjectRules:
        """Finds the rules for a subject, and caches them until a rule is added or removed."""
        rules = [rule for rule in self._trie.match(entry.subject) if may_react(rule.pattern, entry)]
        found = SubjectRules(
            certain=[rule for rule in rules if rule.predicate.is_blank],
            conditional=[rule for rule in rules if not rule.predicate.is_blank],
            is_limited=any(rule.above or rule.through is not None for rule in rules),
        )
        if len(self._found) >= MAX_SUBJECTS:
            self._found.clear()
        self._found[entry.subject] = found
        return found

    def evaluate(self, rules: Sequence[Rule], entry: Entry) -> list[Evaluation]:
        """Evaluates the predicates of rules for an entry, which is bound once for all of them."""
        return list(self._evaluations(rules, entry))

    def _evaluations(self, rules: Sequence[Rule], entry: Entry) -> Iterator[Evaluation]:
        activation = bind(entry)
        began, worked = self._clocks.wall(), self._clocks.cpu()
        for rule in rules:
            verdict = rule.predicate.evaluate(activation)
            ended = self._clocks.wall()
            seconds, began, is_too_slow = ended - began, ended, False
            if seconds > NOTICED_S:  # the CPU clock is expensive, and tells a slow predicate from a busy machine
                spent, worked = self._clocks.cpu() - worked, self._clocks.cpu()
                if spent > SLOW_S:
                    is_too_slow = self._is_slow(rule, activation)
                    began, worked = self._clocks.wall(), self._clocks.cpu()
            yield Evaluation(rule, verdict.matched, verdict.error, seconds, is_too_slow)

    def _is_slow(self, rule: Rule, activation: Activation) -> bool:
        """Evaluates once more: the garbage collector may have run during the first time."""
        began, worked = self._clocks.wall(), self._clocks.cpu()
        rule.predicate.evaluate(activation)
        return self._clocks.wall() - began > SLOW_S and self._clocks.cpu() - worked > SLOW_S


def _rules(state: ReactionState) -> Iterator[Rule]:
    ends = [version.since for version in state.versions[1:]]
    begins = [0, *ends]
    for version, above, through in zip(state.versions, begins, [*ends, None], strict=True):
        yield Rule(
            reaction=version.reaction,
            pattern=Pattern.parse(version.reaction.subject_pattern),
            predicate=predicate_of(version.reaction.predicate_cel),
            above=max(above, state.cursor or 0),
            through=through,
        )


class InvalidPredicate:
    """A registered predicate that this version does not accept; each evaluation is an error with the reason."""

    is_blank = False

    def __init__(self, reason: str) -> None:
        self._verdict = Verdict(matched=False, error=reason)

    def evaluate(self, activation: Activation) -> Verdict:
        return self._verdict


@lru_cache(maxsize=16_384)
def predicate_of(text: str) -> Predicate | InvalidPredicate:
    """The compiled predicate of a registration."""
    try:
        return Predicate(text)
    except UsageError as error:
        return InvalidPredicate(str(error))
