"""Fuzz target: conditions in CEL, from their text to the verdict about an entry."""

from tape.core import codec
from tape.core.errors import TapeError, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.predicate.limits import MAX_TEXT_BYTES
from tape.core.predicate.predicate import Predicate, bind
from tape.core.predicate.text import text_of
from tests.fuzz.inputs import text

USUAL = b'{"i": 7, "s": "a", "l": [1, 2], "m": {"k": null}, "b": true, "f": 1.5}'


def predicate(data: bytes) -> None:
    """A condition is refused, or has a verdict for every payload, which its tree written as text has, too."""
    condition, _, payload = data.partition(b"\0")
    try:
        found = Predicate(text(condition))
    except UsageError:
        return
    verdict = found.evaluate(bind(_entry(payload)))
    if found.expression is None:
        assert found.is_blank and verdict.matched
        return
    written = text_of(found.expression)
    if len(written.encode()) > MAX_TEXT_BYTES:
        return
    again = Predicate(written)
    assert again.expression is not None and text_of(again.expression) == written
    second = again.evaluate(bind(_entry(payload)))
    assert (second.matched, second.error is None) == (verdict.matched, verdict.error is None)


def _entry(payload: bytes) -> Entry:
    try:
        value = codec.decode(payload)
    except TapeError:
        value = codec.decode(USUAL)
    return Event(run_id="r", payload=value).at(2, 1, 5, 0, Epoch(1))
