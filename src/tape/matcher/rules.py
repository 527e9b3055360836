"""Reactions made ready to be asked about an entry: patterns in a trie, predicates compiled once."""

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
MOST_SUBJECTS: Final = 4_096


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rule:
    """A version of a reaction and the positions it is for: after `above`, up to and including `through`."""

    reaction: Reaction
    pattern: Pattern
    predicate: "Predicate | Broken"
    above: int = 0
    through: int | None = None

    def is_for(self, global_seq: int) -> bool:
        return self.above < global_seq and (self.through is None or global_seq <= self.through)


class Finding(NamedTuple):
    """What a rule says of an entry: whether it matches, how it erred if it did, and how long that took."""

    rule: Rule
    matched: bool
    error: str | None = None
    seconds: float = 0.0
    is_too_slow: bool = False


class Found(NamedTuple):
    """The rules whose patterns match a subject; whether any of them is only for some positions."""

    sure: Sequence[Rule]
    asked: Sequence[Rule]
    is_limited: bool


class Clocks(Protocol):
    """The time that passes, and the time this thread was working."""

    def wall(self) -> float: ...
    def cpu(self) -> float: ...


class SystemClocks:
    """The clocks of this machine."""

    wall = staticmethod(time.perf_counter)
    cpu = staticmethod(time.thread_time)


class Rules:
    """The reactions that are asked together."""

    def __init__(self, clocks: Clocks | None = None) -> None:
        self._clocks = clocks or SystemClocks()
        self._trie: Trie[Rule] = Trie()
        self._rules: dict[str, Sequence[Rule]] = {}
        self._found: dict[str, Found] = {}

    def __contains__(self, reaction_id: str) -> bool:
        return reaction_id in self._rules

    def __len__(self) -> int:
        return len(self._rules)

    def put(self, reaction_id: str, state: ReactionState) -> None:
        self.drop(reaction_id)
        self._found.clear()
        self._rules[reaction_id] = rules = list(_rules(state))
        for rule in rules:
            self._trie.add(rule.pattern, rule)

    def sort(self, reaction_id: str, state: ReactionState | None) -> None:
        """Has it if it is one of the pack, and else not."""
        if state is not None and state.is_matching and state.cursor is None:
            self.put(reaction_id, state)
        else:
            self.drop(reaction_id)

    def drop(self, reaction_id: str) -> None:
        for rule in self._rules.pop(reaction_id, ()):
            self._found.clear()
            self._trie.discard(rule.pattern, rule)

    def of(self, entry: Entry) -> tuple[Sequence[Rule], Sequence[Rule]]:
        """The rules that match an entry for sure, and those whose predicates are to be asked."""
        found = self._found.get(entry.subject) or self._find(entry)
        if not found.is_limited:
            return found.sure, found.asked
        sure, asked = ([rule for rule in some if rule.is_for(entry.global_seq)] for some in (found.sure, found.asked))
        return sure, asked

    def _find(self, entry: Entry) -> "Found":
        """The rules for a subject's entries, kept until a rule comes or goes."""
        rules = [rule for rule in self._trie.match(entry.subject) if may_react(rule.pattern, entry)]
        found = Found(
            sure=[rule for rule in rules if rule.predicate.is_blank],
            asked=[rule for rule in rules if not rule.predicate.is_blank],
            is_limited=any(rule.above or rule.through is not None for rule in rules),
        )
        if len(self._found) >= MOST_SUBJECTS:
            self._found.clear()
        self._found[entry.subject] = found
        return found

    def evaluated(self, rules: Sequence[Rule], entry: Entry) -> list[Finding]:
        """What each of them says of an entry; one activation serves them all."""
        return list(self._evaluated(rules, entry))

    def _evaluated(self, rules: Sequence[Rule], entry: Entry) -> Iterator[Finding]:
        activation = bind(entry)
        began, worked = self._clocks.wall(), self._clocks.cpu()
        for rule in rules:
            verdict = rule.predicate.evaluate(activation)
            ended = self._clocks.wall()
            seconds, began, is_too_slow = ended - began, ended, False
            if seconds > NOTICED_S:  # being held up by others is not its fault, but asking for its own time is dear
                spent, worked = self._clocks.cpu() - worked, self._clocks.cpu()
                if spent > SLOW_S:
                    is_too_slow = self._is_slow(rule, activation)
                    began, worked = self._clocks.wall(), self._clocks.cpu()
            yield Finding(rule, verdict.matched, verdict.error, seconds, is_too_slow)

    def _is_slow(self, rule: Rule, activation: Activation) -> bool:
        """Asks once more: the first time a collection of garbage may have come between."""
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


class Broken:
    """A predicate that was accepted once and no longer is: it errs, and says why."""

    is_blank = False

    def __init__(self, reason: str) -> None:
        self._verdict = Verdict(matched=False, error=reason)

    def evaluate(self, activation: Activation) -> Verdict:
        return self._verdict


@lru_cache(maxsize=16_384)
def predicate_of(text: str) -> Predicate | Broken:
    """A predicate that was registered, compiled once."""
    try:
        return Predicate(text)
    except UsageError as error:
        return Broken(str(error))
