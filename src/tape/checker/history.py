"""A history as the judges look at it: requests with their answers, the entries at each position, and what was read."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tape.checker.lines import (
    AppendedEvent,
    AppendLine,
    EntryLine,
    ForkLine,
    GapLine,
    MalformedHistory,
    Numbered,
    StreamLine,
    TermLine,
)
from tape.checker.outbox_history import OutboxHistory
from tape.checker.work_history import WorkHistory

TERM_BITS: Final = 48  # of a place below its term's index

Name = tuple[str, int]  # of an operation: its client and number


class Seat(NamedTuple):
    """What stands at a place of the journal, and the line that says so."""

    run_id: str
    seq: int
    event_id: str
    subject: str
    line: int


class AppendAnswer(NamedTuple):
    """The places that an append was acknowledged with."""

    places: tuple[int, ...]
    seqs: tuple[int, ...]
    line: int


@dataclass(slots=True)
class RecordedAppend:
    """One append, with all its tries; `floor` is the highest place anybody had seen before the first of them."""

    line: int
    floor: int
    key: str
    events: Sequence[AppendedEvent]
    undecided: int = 1
    """The tries that did not fail: they succeeded, or may have."""
    answers: list[AppendAnswer] = field(default_factory=list)


@dataclass(slots=True)
class Reading:
    """One stream: what it delivered, in order, and how it ended."""

    asked: StreamLine
    line: int
    epoch: int
    seqs: "array[int]" = field(default_factory=lambda: array("q"))
    places: "array[int]" = field(default_factory=lambda: array("q"))
    lines: "array[int]" = field(default_factory=lambda: array("q"))
    gaps: dict[int, tuple[int, int]] = field(default_factory=dict)
    """How many entries came before, with the cursor that it continues behind, and the line."""
    end: tuple[int, StreamLine] | None = None

    @property
    def is_of_journal(self) -> bool:
        """Whether it must deliver every entry of the journal."""
        return not (self.asked.run_id or self.asked.pattern or self.asked.is_filtered)

    @property
    def is_whole(self) -> bool:
        """Whether it read the journal up to its head."""
        return self.is_of_journal and not self.asked.is_followed and self.end is not None and self.end[1].step == "ok"


class Lineage:
    """The terms of a journal: which entry a position means, to a reader in an epoch."""

    def __init__(self, terms: Sequence[TermLine]) -> None:
        has_first = bool(terms) and terms[0].first == 1
        self.terms = terms if has_first else (TermLine(client="", epoch=0, first=1), *terms)

    def place(self, position: int, epoch: int) -> int:
        """The position with the index of the term that gave it; it rises along the journal and with each term."""
        found = 0
        for index, term in enumerate(self.terms):
            if term.first <= position and (term.epoch <= epoch or not epoch):
                found = index
        return found << TERM_BITS | position

    @property
    def may_lose(self) -> bool:
        """Whether a later term may have begun without what was acknowledged before."""
        return any(not term.is_lossless for term in self.terms[1:])

    def may_repeat(self, position: int) -> bool:
        """Whether a position may have been given in two terms."""
        return any(term.first <= position for term in self.terms[1:])

    def lost_to(self, place: int) -> TermLine | None:
        """The later term that begins at or before a place, so that the entry is gone."""
        later = self.terms[(place >> TERM_BITS) + 1 :]
        return next((term for term in later if term.first <= position(place)), None)


def position(place: int) -> int:
    return place & ((1 << TERM_BITS) - 1)


class RecordedHistory:
    """All that the judges need, collected in one pass."""

    def __init__(self, terms: Sequence[TermLine] = ()) -> None:
        self.lineage = Lineage(terms)
        self.requests: dict[Name, RecordedAppend] = {}
        self.readings: dict[Name, Reading] = {}
        self.seats: dict[int, Seat] = {}
        self.disputes: list[tuple[int, Seat, Seat]] = []
        """Places at which two readers or writers found different entries."""
        self.forks: dict[str, tuple[int, ForkLine]] = {}
        self.work = WorkHistory()
        self.outbox = OutboxHistory()
        self._highest = 0

    @classmethod
    def collect(cls, lines: Iterable[Numbered], terms: Sequence[TermLine] = ()) -> "RecordedHistory":
        found = cls(terms)
        for number, line in lines:
            found.add(number, line)
        return found

    def add(self, number: int, line: object) -> None:
        match line:
            case EntryLine():
                self._deliver(number, line)
            case AppendLine():
                self._append(number, line)
            case StreamLine():
                self._stream(number, line)
            case GapLine():
                self._gap(number, line)
            case ForkLine(step="ok"):
                self.forks[line.child] = (number, line)
            case _:
                if not self.work.add(number, line):
                    self.outbox.add(number, line)

    def acknowledged(self) -> Iterator[tuple[RecordedAppend, AppendAnswer]]:
        """Every append that was acknowledged, with its first answer."""
        for request in self.requests.values():
            for answer in request.answers[:1]:
                yield request, answer

    def latest_whole(self) -> Reading | None:
        """The newest read of the whole journal."""
        return max((each for each in self.readings.values() if each.is_whole), key=lambda each: each.line, default=None)

    def _append(self, number: int, line: AppendLine) -> None:
        name = line.client, line.number
        if line.step == "invoke":
            self._invoke(number, line)
            return
        request = self.requests.get(name)
        if request is None:
            raise MalformedHistory(number, f"the append {line.number} of {line.client} was never invoked")
        request.undecided -= line.step == "fail"
        if line.step == "ok":
            self._answer(number, line, request)

    def _invoke(self, number: int, line: AppendLine) -> None:
        request = self.requests.get((line.client, line.number))
        if request is None:
            self.requests[line.client, line.number] = RecordedAppend(number, self._highest, line.key, line.events)
        elif line.key and (line.key, line.events) == (request.key, request.events):
            request.undecided += 1
        else:
            raise MalformedHistory(number, f"{line.client} has used the number {line.number} for another request")

    def _answer(self, number: int, line: AppendLine, request: RecordedAppend) -> None:
        if len(line.positions) != len(request.events):
            raise MalformedHistory(number, f"{len(line.positions)} positions for {len(request.events)} events")
        places = tuple(self.lineage.place(each.global_seq, line.epoch) for each in line.positions)
        request.answers.append(AppendAnswer(places, tuple(each.seq for each in line.positions), number))
        for place, event, each in zip(places, request.events, line.positions, strict=True):
            self._see(place, Seat(event.run_id, each.seq, event.event_id, event.subject, number))

    def _stream(self, number: int, line: StreamLine) -> None:
        name = line.client, line.number
        if line.step != "invoke":
            self._reading(number, *name).end = (number, line)
        elif name in self.readings:
            raise MalformedHistory(number, f"{line.client} has used the number {line.number} for another stream")
        else:
            self.readings[name] = Reading(line, number, line.epoch)

    def _gap(self, number: int, line: GapLine) -> None:
        reading = self._reading(number, line.client, line.number)
        reading.gaps[len(reading.places)] = (line.after, number)
        reading.epoch = line.epoch or reading.epoch

    def _deliver(self, number: int, line: EntryLine) -> None:
        reading = self._reading(number, line.client, line.number)
        place = self.lineage.place(line.global_seq, line.epoch or reading.epoch)
        reading.seqs.append(line.seq)
        reading.places.append(place)
        reading.lines.append(number)
        self._see(place, Seat(line.run_id, line.seq, line.event_id, line.subject, number))

    def _see(self, place: int, seat: Seat) -> None:
        self._highest = max(self._highest, place)
        before = self.seats.setdefault(place, seat)
        if before[:2] != seat[:2] or (before.event_id and seat.event_id and before.event_id != seat.event_id):
            self.disputes.append((place, before, seat))
        elif seat.event_id and not before.event_id:
            self.seats[place] = seat

    def _reading(self, number: int, client: str, stream: int) -> Reading:
        found = self.readings.get((client, stream))
        if found is None:
            raise MalformedHistory(number, f"the stream {stream} of {client} was never opened")
        return found
