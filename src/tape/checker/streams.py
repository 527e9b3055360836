"""Judges streams: they resume exactly or report a gap, and end with a reason (P6, P7)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set as AbstractSet

from tape.checker.history import TERM_BITS, Reading, RecordedHistory, position
from tape.checker.invariant_result import Anomaly, InvariantResult
from tape.core.subject import Pattern


def streams_resume_exactly(history: RecordedHistory) -> InvariantResult:
    """P6: a stream delivers the next entry behind its cursor and leaves none out, or reports a gap."""
    anomalies: list[Anomaly] = []
    judged = 0
    matching: dict[str, tuple[list[int], set[int]]] = {}
    for reading in history.readings.values():
        if reading.asked.is_filtered:
            continue
        judged += len(reading.places)
        if reading.asked.pattern:
            if reading.asked.pattern not in matching:
                found = _matching(history, reading.asked.pattern)
                matching[reading.asked.pattern] = (found, {*found})
            anomalies += _unselected(history, reading, *matching[reading.asked.pattern])
        else:
            anomalies += _skips(reading)
        anomalies += _crossings(history, reading)
    return InvariantResult(judged, anomalies)


def streams_end_with_a_reason(history: RecordedHistory) -> InvariantResult:
    """P7: a stream that ends says why; one that does not follow may simply end at the head."""
    ended = [reading for reading in history.readings.values() if reading.end and reading.end[1].step != "unknown"]
    anomalies = [
        Anomaly("P7", f"a stream of {reading.asked.client} ended without a reason", (reading.line, reading.end[0]))
        for reading in ended
        if reading.end and not reading.end[1].reason and (reading.asked.is_followed or reading.end[1].step == "fail")
    ]
    return InvariantResult(len(ended), anomalies)


def _skips(reading: Reading) -> Iterator[Anomaly]:
    """Entries of a run or of the journal that are not the next one; those that do not rise are for P5."""
    cursor, line = reading.asked.after, reading.line
    units = reading.seqs if reading.asked.run_id else reading.places
    for index, unit in enumerate(units):
        cursor, line = reading.gaps.get(index, (cursor, line))
        found = position(unit)
        if found > cursor + 1 or (index == 0 and found <= cursor):
            what = f"run {reading.asked.run_id}" if reading.asked.run_id else "the journal"
            sentence = f"{reading.asked.client} got {found} of {what} behind {cursor}, without a gap"
            yield Anomaly("P6", sentence, (line, reading.lines[index]))
        cursor, line = found, reading.lines[index]


def _matching(history: RecordedHistory, pattern: str) -> list[int]:
    """The places of all entries that match, in order."""
    parsed = Pattern.parse(pattern)
    seats = history.seats.items()
    return sorted(place for place, seat in seats if seat.subject and parsed.matches(seat.subject))


def _unselected(
    history: RecordedHistory, reading: Reading, matching: Sequence[int], known: AbstractSet[int]
) -> Iterator[Anomaly]:
    """Entries that match and were left out, and entries that do not match."""
    cursor, line = history.lineage.place(reading.asked.after, reading.asked.epoch), reading.line
    for index, place in enumerate(reading.places):
        if index in reading.gaps:
            cursor, line = history.lineage.place(reading.gaps[index][0], reading.epoch), reading.gaps[index][1]
        seat = history.seats[place]
        who = reading.asked.client
        if seat.subject and place not in known:
            sentence = f"{who} got {seat.subject}, which {reading.asked.pattern} does not match"
            yield Anomaly("P6", sentence, (reading.line, reading.lines[index]))
        for missed in matching[bisect_right(matching, cursor) : bisect_left(matching, place)]:
            if history.lineage.lost_to(missed) is None:
                sentence = f"{who} got {position(place)} behind {position(cursor)}, and not {position(missed)}"
                yield Anomaly("P6", sentence, (line, history.seats[missed].line, reading.lines[index]))
        cursor, line = place, reading.lines[index]


def _crossings(history: RecordedHistory, reading: Reading) -> Iterator[Anomaly]:
    """Streams that went on into a later term although they had entries which that term replaced."""
    if len(history.lineage.terms) < 2 or reading.asked.run_id:
        return
    for index in range(1, len(reading.places)):
        before, place = reading.places[index - 1], reading.places[index]
        is_later = before >> TERM_BITS < place >> TERM_BITS
        if is_later and index not in reading.gaps and history.lineage.lost_to(before) is not None:
            sentence = f"{reading.asked.client} went on at {position(place)} behind entries that are gone"
            yield Anomaly("P6", sentence, (reading.lines[index - 1], reading.lines[index]))
