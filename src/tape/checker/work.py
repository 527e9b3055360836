"""Judges tasks: one for each match, settled by its newest attempt, within the limits, to the end (P10 to P13)."""

from collections.abc import Iterator

from tape.checker.history import RecordedHistory, position
from tape.checker.invariant_result import NOTHING, Anomaly, InvariantResult
from tape.checker.lines import RegisterLine
from tape.checker.work_history import RunningChange, Try, WorkHistory
from tape.core.subject import Pattern

ENDED = ("done", "dlq")


def matches_make_one_task(history: RecordedHistory) -> InvariantResult:
    """P10: a reaction and an entry have one task, and it is in the final list if the entry matches."""
    anomalies = []
    for (reaction, place), tasks in history.work.matches.items():
        if len(tasks) > 1 and not history.lineage.may_repeat(place):
            sentence = f"reaction {reaction} has {len(tasks)} tasks for entry {place}: {', '.join(tasks)}"
            anomalies.append(Anomaly("P10", sentence, (*tasks.values(),)))
    expected = [*_expected(history)]
    listed = {(row.reaction_id, row.global_seq) for _, row in (history.work.rows or {}).values()}
    for reaction, place, lines in expected:
        if (reaction, place) not in listed:
            sentence = f"reaction {reaction} has no task for entry {place}"
            anomalies.append(Anomaly("P10", sentence, (*lines, history.work.rows_line)))
    return InvariantResult(len(history.work.matches) + len(expected), anomalies)


def _expected(history: RecordedHistory) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Reactions and the positions that they must have a task for, with the lines that say so."""
    exact = [each for each in history.work.reactions.values() if each[1].pattern and history.work.rows is not None]
    for line, register in exact:
        pattern = Pattern.parse(register.pattern)
        for request, answer in history.acknowledged():
            if line < request.line and answer.line < history.work.rows_line:
                for place, event in zip(answer.places, request.events, strict=True):
                    if pattern.matches(event.subject) and history.lineage.lost_to(place) is None:
                        yield register.reaction_id, position(place), (line, answer.line)


def only_newest_attempts_settle(history: RecordedHistory) -> InvariantResult:
    """P11: an attempt has one owner, and none settles after a newer one has begun."""
    work = history.work
    if history.lineage.may_lose:  # attempts that a promotion lost are given again
        return NOTHING
    anomalies = [
        Anomaly(
            "P11",
            f"task {each.task_id} was settled by attempt {each.attempt} after attempt {each.newest.attempt} had begun",
            (each.newest.line, each.line),
        )
        for each in work.settled
        if each.newest is not None and each.newest.attempt > each.attempt
    ]
    for task_id, tries in work.tries.items():
        anomalies += _shared(task_id, tries)
    anomalies += _overwritten(work)
    return InvariantResult(len(work.settled) + len(work.tries), anomalies)


def _shared(task_id: str, tries: list[Try]) -> Iterator[Anomaly]:
    owners: dict[int, Try] = {}
    for each in tries:
        first = owners.setdefault(each.attempt, each)
        if first.client != each.client:
            sentence = f"attempt {each.attempt} of task {task_id} belongs to {first.client} and to {each.client}"
            yield Anomaly("P11", sentence, (first.line, each.line))


def _overwritten(work: WorkHistory) -> Iterator[Anomaly]:
    """Rows that an older attempt has settled, as far as the final list shows it."""
    for task_id, (line, row) in (work.rows or {}).items():
        newest = work.newest(task_id)
        if newest is not None and newest.attempt > row.attempt:
            sentence = f"task {task_id} ended with attempt {row.attempt}, but attempt {newest.attempt} had begun"
            yield Anomaly("P11", sentence, (newest.line, line))
        end = work.ends.get((task_id, row.attempt))
        if row.status == "done" and end is not None and end[1].step == "fail":
            sentence = f"task {task_id} is done, but its newest attempt {row.attempt} failed"
            yield Anomaly("P11", sentence, (end[0], line))


def tasks_end(history: RecordedHistory) -> InvariantResult:
    """P12, by the final list: it has each task that was ever tried, and all have ended."""
    work = history.work
    if work.rows is None:
        return NOTHING
    anomalies = [
        Anomaly("P12", f"task {task_id} is {row.status} in the final list", (line,))
        for task_id, (line, row) in work.rows.items()
        if row.status not in ENDED
    ]
    for task_id, tries in work.tries.items():
        if task_id not in work.rows and not history.lineage.may_lose:
            sentence = f"task {task_id} was tried and is not in the final list"
            anomalies.append(Anomaly("P12", sentence, (tries[0].line, work.rows_line)))
    return InvariantResult(len(work.rows), anomalies)


def limits_are_global(history: RecordedHistory) -> InvariantResult:
    """P13: all workers together run no more tasks of a reaction than it allows."""
    running: dict[str, dict[str, RunningChange]] = {}
    registered = iter([*history.work.limits, (1 << 62, None)])
    line, register = next(registered)
    limits: dict[str, RegisterLine] = {}
    anomalies, judged = [], 0
    for change in history.work.changes:
        while register is not None and line < change.line:
            limits[register.reaction_id] = register
            line, register = next(registered)
        _change(running, change)
        limit = limits.get(change.reaction_id)
        if change.what == "begin" and limit is not None and limit.max_concurrency:
            judged += 1
            now = running[change.reaction_id]
            if len(now) > limit.max_concurrency:
                sentence = f"{len(now)} tasks of {change.reaction_id} ran at once; it allows {limit.max_concurrency}"
                anomalies.append(Anomaly("P13", sentence, tuple(sorted(each.line for each in now.values()))))
    return InvariantResult(judged, anomalies)


def _change(running: dict[str, dict[str, RunningChange]], change: RunningChange) -> None:
    if change.what == "begin":
        running.setdefault(change.reaction_id, {})[change.task_id] = change
        return
    for tasks in running.values():
        if change.what == "end":
            now = tasks.get(change.task_id)
            if now is not None and (now.attempt, now.client) == (change.attempt, change.client):
                del tasks[change.task_id]
        else:
            for task_id in [name for name, each in tasks.items() if each.client == change.client]:
                del tasks[task_id]
