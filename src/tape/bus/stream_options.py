"""Turns the options of a stream into a selection."""

from typing import TypedDict

from tape.bus.selection import EntryFilter, JournalSelection, RunSelection, Selection
from tape.core.errors import InvalidCursor, UsageError
from tape.core.event import check_run_id
from tape.core.ids import Epoch
from tape.core.ports import NO_EPOCH, TermReader
from tape.core.subject import Pattern


class StreamOptions(TypedDict, total=False):
    """What `Journal.stream` documents."""

    run_id: str | None
    from_seq: int
    subject: str | None
    where: str | None
    from_global_seq: int
    follow: bool
    epoch: int | None


def select(
    history: TermReader,
    present: Epoch,
    *,
    run_id: str | None = None,
    from_seq: int = 1,
    subject: str | None = None,
    where: str | None = None,
    from_global_seq: int = 0,
    follow: bool = True,
    epoch: int | None = None,
) -> Selection:
    """The selection of a stream; `present` is the epoch of a cursor that comes without one."""
    is_beginning = from_seq <= 1 and not from_global_seq  # which is a valid cursor in every epoch
    known = Epoch(epoch) if epoch is not None else NO_EPOCH if is_beginning else present
    pattern = None if subject is None else Pattern.parse(subject)
    if run_id is None:
        if from_seq != 1:
            raise UsageError("from_seq is a place in a run; give run_id, or from_global_seq")
        after = _check_cursor("from_global_seq", from_global_seq)
        return JournalSelection(history, pattern, after, follow, entry_filter(None, where), known)
    if from_global_seq != 0:
        raise UsageError("from_global_seq is a place in the journal; a run is read from from_seq")
    first = _check_cursor("from_seq", from_seq)
    return RunSelection(history, check_run_id(run_id), first, follow, entry_filter(pattern, where), known)


def _check_cursor(name: str, value: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise InvalidCursor(f"{name} must be 0 or more, not {value!r}")
    return value


def entry_filter(pattern: Pattern | None, where: str | None) -> EntryFilter | None:
    """The filter of a pattern and a predicate; None when every entry passes."""
    if where is not None and not isinstance(where, str):
        raise UsageError(f"where is a CEL expression, not {type(where).__name__}")
    if where is not None and where.strip():
        from tape.core.predicate.predicate import Predicate, bind

        predicate = Predicate(where)
        if pattern is None:
            return lambda entry: bool(predicate.evaluate(bind(entry)))
        return lambda entry: pattern.matches(entry.subject) and bool(predicate.evaluate(bind(entry)))
    return None if pattern is None else lambda entry: pattern.matches(entry.subject)
