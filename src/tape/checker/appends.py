"""Judges appends: what was acknowledged is there, whole, once, and at positions that rise (P1 to P5)."""

from collections.abc import Iterator

from tape.checker.history import Reading, RecordedAppend, RecordedHistory, Seat, position
from tape.checker.invariant_result import NOTHING, Anomaly, InvariantResult


def acknowledged_appends_survive(history: RecordedHistory) -> InvariantResult:
    """P1, by the newest read of the whole journal: it has each append that was acknowledged before it began."""
    read = history.latest_whole()
    if read is None:
        return NOTHING
    held, anomalies, judged = {*read.places}, [], 0
    for request, answer in history.acknowledged():
        if answer.line < read.line:
            for place, event in zip(answer.places, request.events, strict=True):
                judged += 1
                if why := _lost(history, read, held, place):
                    sentence = f"event {event.event_id} was acknowledged at {position(place)} and {why}"
                    anomalies.append(Anomaly("P1", sentence, (request.line, answer.line, read.line)))
    return InvariantResult(judged, anomalies)


def _lost(history: RecordedHistory, read: Reading, held: set[int], place: int) -> str:
    """Why an acknowledged entry should be there and is not; empty if it is, or need not be."""
    begins_after, _ = read.gaps.get(0, (read.asked.after, 0))
    if place in held or position(place) <= begins_after:
        return ""
    term = history.lineage.lost_to(place)
    if term is None:
        return "is not in the journal"
    return f"was lost when epoch {term.epoch} began" if term.is_lossless else ""


def requests_are_whole(history: RecordedHistory) -> InvariantResult:
    """P2: the events of a request are all in the journal, one behind the other, or none is, as after a failure."""
    places = _places(history)
    read = history.latest_whole()
    held = {*read.places} if read else set()
    anomalies, judged = [], 0
    for request in history.requests.values():
        found = [places.get(event.event_id) for event in request.events]
        there = [place for place in found if place is not None]
        if there:
            judged += 1
            why = "" if request.undecided else "failed, and is in the journal"
            if why := why or _torn(history, found, there, there[0] in held):
                where = (history.seats[place].line for place in there)
                names = f"{request.events[0].event_id} to {request.events[-1].event_id}"
                anomalies.append(Anomaly("P2", f"the request of {names} {why}", (request.line, *where)))
    return InvariantResult(judged, anomalies)


def _torn(history: RecordedHistory, found: list[int | None], there: list[int], is_read_to_head: bool) -> str:
    base = there[0] - found.index(there[0])
    for offset, place in enumerate(found):
        if place is None and (is_read_to_head or base + offset in history.seats):
            return "is in the journal in part"
        if place is not None and place != base + offset:
            return "is in the journal in pieces or out of order"
    return ""


def keys_append_once(history: RecordedHistory) -> InvariantResult:
    """P3: every answer to a key has the same positions, and its events are in the journal once."""
    keyed: dict[str, RecordedAppend] = {}
    anomalies: list[Anomaly] = []
    for request in history.requests.values():
        if request.key:
            first = keyed.setdefault(request.key, request)
            anomalies += _other_answers(history, first, request)
    events = {event.event_id for request in keyed.values() for event in request.events}
    anomalies += _repeated(history, events)
    return InvariantResult(len(keyed), anomalies)


def _other_answers(history: RecordedHistory, first: RecordedAppend, request: RecordedAppend) -> Iterator[Anomaly]:
    answers = [*first.answers[:1], *request.answers]
    there = [each for each in answers if not any(map(history.lineage.lost_to, each.places))]
    for other in there[1:]:
        if other[:2] != there[0][:2]:
            places = f"{position(there[0].places[0])} and {position(other.places[0])}"
            yield Anomaly("P3", f"key {request.key} was appended at {places}", (there[0].line, other.line))


def _repeated(history: RecordedHistory, events: set[str]) -> Iterator[Anomaly]:
    first: dict[str, int] = {}
    for place, seat in _live(history):
        if seat.event_id in events:
            earlier = first.setdefault(seat.event_id, place)
            if earlier != place:
                sentence = f"event {seat.event_id} is at {position(earlier)} and at {position(place)}"
                yield Anomaly("P3", sentence, (history.seats[earlier].line, seat.line))


def seqs_are_dense(history: RecordedHistory) -> InvariantResult:
    """P4: a position has one entry; the seqs of a run are 1, 2, 3, … and rise with the positions."""
    anomalies = [
        Anomaly("P4", f"position {position(place)} has two entries: {_named(a)} and {_named(b)}", (a.line, b.line))
        for place, a, b in history.disputes
    ]
    last: dict[str, tuple[Seat, int]] = {}
    holes, before, judged = 0, 0, 0
    for place, seat in sorted(_live(history)):
        holes += position(place) != before + 1
        before = position(place)
        judged += 1
        if why := _breaks(history, seat, last.get(seat.run_id), holes):
            earlier = last.get(seat.run_id)
            lines = (earlier[0].line, seat.line) if earlier else (seat.line,)
            anomalies.append(Anomaly("P4", f"at position {before}, run {seat.run_id} has seq {seat.seq} {why}", lines))
        last[seat.run_id] = (seat, holes)
    return InvariantResult(judged, anomalies)


def _breaks(history: RecordedHistory, seat: Seat, earlier: tuple[Seat, int] | None, holes: int) -> str:
    """Why a seq cannot follow; where the history does not show each position in between, it only has to rise."""
    if earlier is not None:
        (before, holes_before) = earlier
        is_wrong = seat.seq <= before.seq or (holes == holes_before and seat.seq != before.seq + 1)
        return f"behind {before.seq}" if is_wrong else ""
    fork = history.forks.get(seat.run_id)
    first = fork[1].at_seq + 1 if fork else 1
    return f"as its first, not {first}" if holes == 0 and seat.seq != first else ""


def positions_never_come_late(history: RecordedHistory) -> InvariantResult:
    """P5: a stream only rises, and an append comes behind all that anybody had seen before it was sent."""
    anomalies = [each for reading in history.readings.values() for each in _falls(reading)]
    floors: dict[str, int] = {}
    judged = sum(len(reading.places) for reading in history.readings.values())
    for request in history.requests.values():
        floor = floors.setdefault(request.key, request.floor) if request.key else request.floor
        for answer in request.answers[:1]:
            judged += 1
            if min(answer.places) <= floor:
                sentence = (
                    f"an append got position {position(min(answer.places))} after {position(floor)} had been seen"
                )
                lines = (history.seats[floor].line, request.line, answer.line)
                anomalies.append(Anomaly("P5", sentence, lines))
    return InvariantResult(judged, anomalies)


def _falls(reading: Reading) -> Iterator[Anomaly]:
    units = reading.seqs if reading.asked.run_id else reading.places
    for index in range(1, len(units)):
        if units[index] <= units[index - 1] and index not in reading.gaps:
            sentence = f"{reading.asked.client} got {position(units[index])} after {position(units[index - 1])}"
            yield Anomaly("P5", sentence, (reading.lines[index - 1], reading.lines[index]))


def _places(history: RecordedHistory) -> dict[str, int]:
    """Where each event stands first."""
    found: dict[str, int] = {}
    for place, seat in _live(history):
        if seat.event_id:
            found.setdefault(seat.event_id, place)
    return found


def _live(history: RecordedHistory) -> Iterator[tuple[int, Seat]]:
    """The entries that no later term has replaced."""
    if len(history.lineage.terms) < 2:
        yield from history.seats.items()
        return
    for place, seat in history.seats.items():
        if history.lineage.lost_to(place) is None:
            yield place, seat


def _named(seat: Seat) -> str:
    return f"{seat.event_id or 'an event'} at {seat.run_id} {seat.seq}"
