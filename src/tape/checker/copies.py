"""Judges what stands beside the journal: the outbox, forks and the lake (P14 to P17)."""

from collections.abc import Iterator

from tape.checker.history import RecordedHistory, position
from tape.checker.invariant_result import Anomaly, InvariantResult
from tape.checker.lines import EffectLine
from tape.checker.outbox_history import OutboxHistory


def published_means_committed(history: RecordedHistory) -> InvariantResult:
    """P14: only what was committed is handled; all of it is, and a handler's rows are there once."""
    outbox = history.outbox
    effects = outbox.effects or []
    anomalies = [
        *_uncommitted(outbox),
        *_twice(effects),
        *(_unhandled(outbox, effects) if outbox.effects is not None and not history.lineage.may_lose else ()),
    ]
    return InvariantResult(len(outbox.deliveries) + len(effects), anomalies)


def _uncommitted(outbox: OutboxHistory) -> Iterator[Anomaly]:
    for line, given in [*outbox.deliveries, *(outbox.effects or ())]:
        found = outbox.published.get(given.event_id)
        if found is None:
            yield Anomaly("P14", f"{given.handler} got {given.event_id}, which nobody published", (line,))
        elif found[1].step == "fail":
            yield Anomaly("P14", f"{given.handler} got {given.event_id}, which was rolled back", (found[0], line))


def _twice(effects: list[tuple[int, EffectLine]]) -> Iterator[Anomaly]:
    first: dict[tuple[str, str], int] = {}
    for line, effect in effects:
        earlier = first.setdefault((effect.handler, effect.event_id), line)
        if earlier != line:
            sentence = f"the effect of {effect.handler} for {effect.event_id} is there twice"
            yield Anomaly("P14", sentence, (earlier, line))


def _unhandled(outbox: OutboxHistory, effects: list[tuple[int, EffectLine]]) -> Iterator[Anomaly]:
    """Events that are committed and that a handler, which handled others, did not handle by the end."""
    done = {(effect.handler, effect.event_id) for _, effect in effects}
    for handler in sorted({effect.handler for _, effect in effects}):
        for event_id, (line, published) in outbox.published.items():
            if published.step == "ok" and (handler, event_id) not in done:
                yield Anomaly("P14", f"{event_id} was committed, and {handler} never handled it", (line,))


def generations_are_isolated(history: RecordedHistory) -> InvariantResult:
    """P15: a worker handles events of its own generation, or of one that was handed over to it."""
    outbox = history.outbox
    anomalies, judged = [], 0
    for line, given in outbox.deliveries:
        found = outbox.published.get(given.event_id)
        if found is not None:
            judged += 1
            if given.generation not in _allowed(outbox, found[1].generation, line):
                sentence = f"generation {given.generation} got {given.event_id} of generation {found[1].generation}"
                anomalies.append(Anomaly("P15", sentence, (found[0], line)))
    return InvariantResult(judged, anomalies)


def _allowed(outbox: OutboxHistory, generation: int, before: int) -> set[int]:
    allowed = {generation}
    for line, each in outbox.hand_overs:
        if line < before and each.generation in allowed:
            allowed.add(each.to)
    return allowed


def forks_leave_their_parent(history: RecordedHistory) -> InvariantResult:
    """P16: a child begins with its parent's entries, and the parent's stay what they were."""
    parents = {fork.parent: line for line, fork in history.forks.values()}
    anomalies = [
        Anomaly("P16", f"seq {b.seq} of {b.run_id} changed after a fork", (a.line, parents[b.run_id], b.line))
        for _, a, b in history.disputes
        if b.run_id in parents and b.line > parents[b.run_id]
    ]
    found: dict[tuple[str, int], int] = {}
    for place, seat in history.seats.items():
        found.setdefault((seat.run_id, seat.seq), place)
    judged = 0
    for reading in history.readings.values():
        if reading.asked.run_id in history.forks:
            for seq, place, line in zip(reading.seqs, reading.places, reading.lines, strict=True):
                origin = _origin(history, reading.asked.run_id, seq)
                expected = found.get((origin, seq))
                judged += origin != reading.asked.run_id
                if origin != reading.asked.run_id and expected is not None and expected != place:
                    sentence = f"seq {seq} of {reading.asked.run_id} is not that of {origin}, from which it was forked"
                    lines = (history.forks[reading.asked.run_id][0], history.seats[expected].line, line)
                    anomalies.append(Anomaly("P16", sentence, lines))
    return InvariantResult(judged, anomalies)


def _origin(history: RecordedHistory, run_id: str, seq: int) -> str:
    """The run that a seq of a fork belongs to."""
    while (fork := history.forks.get(run_id)) is not None and seq <= fork[1].at_seq:
        run_id = fork[1].parent
    return run_id


def lakes_hold_each_position_once(history: RecordedHistory) -> InvariantResult:
    """P17: a read of the lake has no position twice, leaves none out, and none that the journal did not give."""
    read = history.latest_whole()
    anomalies, judged = [], 0
    for line, lake in history.outbox.lakes:
        last = 0
        for first, until in lake.ranges:
            judged += until - first + 1
            if last and first <= last:
                anomalies.append(Anomaly("P17", f"position {first} is in the lake twice", (line,)))
            elif last and first > last + 1:
                anomalies.append(Anomaly("P17", f"the lake has no position from {last + 1} to {first - 1}", (line,)))
            last = max(last, until)
        if read is not None and read.line > line and read.places and last > position(max(read.places)):
            anomalies.append(Anomaly("P17", f"the journal has no position {last}", (line, read.line)))
    return InvariantResult(judged, anomalies)
