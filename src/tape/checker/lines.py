"""The lines of a history: what clients asked for, what they were answered, and what they read.

A history is a file of JSON objects, one a line, in the order in which things happened. `op` says what a line is about.
A client writes the step `invoke` before it sends a request. After the answer it writes `ok`, `fail` if nothing
happened, or `unknown` if it cannot tell. A client that is killed writes nothing more. `number` names the operation
within its client; a retry with the same key has the number of the first try.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from tape.core.errors import UsageError

Step: TypeAlias = Literal["invoke", "ok", "fail", "unknown"]
Place = Annotated[int, Meta(ge=1, lt=1 << 48)]
Cursor = Annotated[int, Meta(ge=0, lt=1 << 48)]


class Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False, tag_field="op"):
    """What every line has; a line without a step is a fact."""

    client: str
    number: int = 0
    at_ns: int = 0
    """A time, for people: the order of the lines counts."""


class OperationLine(Line, frozen=True, kw_only=True):
    """A step of an operation."""

    step: Step
    reason: str = ""
    """Why it failed, why the outcome is unknown, or why a stream ended."""


class AppendedEvent(Struct, frozen=True, array_like=True, gc=False):
    """`[run_id, event_id, subject]`: any text may identify an event, if it is unique and readers record the same."""

    run_id: str
    event_id: str
    subject: str = ""


class AppendedPosition(Struct, frozen=True, array_like=True, gc=False):
    """`[global_seq, seq]`."""

    global_seq: Place
    seq: Place


class AppendLine(OperationLine, frozen=True, tag="append"):
    """A request to append: `invoke` has the key and the events, `ok` their positions in the same order."""

    key: str = ""
    events: tuple[AppendedEvent, ...] = ()
    positions: tuple[AppendedPosition, ...] = ()
    epoch: int = 0


class StreamLine(OperationLine, frozen=True, tag="stream"):
    """A stream: `invoke` opens it behind a cursor; `ok` and `fail` end it, with a reason; `unknown` leaves it.

    The cursor is a seq in a stream of a run, else a global_seq. One that does not follow ends with `ok` at the head.
    """

    run_id: str = ""
    pattern: str = ""
    after: Cursor = 0
    epoch: int = 0
    is_followed: bool = True
    is_filtered: bool = False
    """Whether a predicate leaves entries out."""


class EntryLine(Line, frozen=True, tag="entry"):
    """An entry that the client's stream of this number delivered."""

    run_id: str
    seq: Place
    global_seq: Place
    event_id: str = ""
    subject: str = ""
    epoch: int = 0


class GapLine(Line, frozen=True, tag="gap"):
    """The stream of this number reported that it continues behind another cursor: history is gone, or the epoch new."""

    after: Cursor
    epoch: int = 0


class TermLine(Line, frozen=True, tag="term"):
    """A term of the journal, from its first position: entries of earlier terms from there on are gone."""

    epoch: int
    first: Place
    is_lossless: bool = False
    """Whether nothing acknowledged may be gone: a restart, or a synchronous standby."""


class StoppedLine(Line, frozen=True, tag="stopped"):
    """The process of this client was killed or suspended: none of its handlers runs."""


class RegisterLine(OperationLine, frozen=True, tag="register"):
    """A reaction was registered, from now on."""

    reaction_id: str
    pattern: str = ""
    """The pattern, if each entry that matches it from now on makes one task: no predicate, debounce or rate limit."""
    max_concurrency: int = 0


class ClaimLine(OperationLine, frozen=True, tag="claim"):
    """One task that was claimed, with the attempt's number."""

    task_id: str
    reaction_id: str
    global_seq: Place
    attempt: int


class HandleLine(OperationLine, frozen=True, tag="handle"):
    """A handler: `invoke` begins an attempt, which returns (`ok`), raises (`fail`) or is cancelled (`unknown`)."""

    task_id: str
    reaction_id: str = ""
    global_seq: Cursor = 0
    attempt: int = 0


class SettleLine(OperationLine, frozen=True, tag="settle"):
    """An attempt is reported as done or failed: `ok` if it was accepted, `fail` if it was refused."""

    task_id: str
    attempt: int


class ReadLine(OperationLine, frozen=True, tag="read"):
    """A list is read: `invoke`, then a line for each row, then `ok`. In a final one, all must have ended."""

    of: Literal["tasks", "effects"]
    is_final: bool = False


class TaskLine(Line, frozen=True, tag="task"):
    """A row of the list of tasks."""

    task_id: str
    reaction_id: str
    global_seq: Place
    status: Literal["pending", "claimed", "done", "dlq"]
    attempt: int


class EffectLine(Line, frozen=True, tag="effect"):
    """A row that an outbox handler's transaction wrote, with the event it was for."""

    handler: str
    event_id: str


class PublishLine(OperationLine, frozen=True, tag="publish"):
    """A transaction that publishes to the outbox: `ok` is committed, `fail` is rolled back."""

    event_id: str
    generation: int = 0


class DeliverLine(OperationLine, frozen=True, tag="deliver"):
    """An outbox handler of a worker's generation: `invoke` when it begins, `ok` when it has ended."""

    event_id: str
    handler: str
    generation: int = 0


class HandOverLine(Line, frozen=True, tag="hand-over"):
    """Events of a generation were given to another."""

    generation: int
    to: int


class ForkLine(OperationLine, frozen=True, tag="fork"):
    """A fork of a run at a seq; `ok` has the child."""

    parent: str
    at_seq: Cursor
    child: str = ""


class LakeLine(Line, frozen=True, tag="lake"):
    """A whole read of the lake's journal: its global_seqs in order, as `[first, last]` of each range without a hole."""

    ranges: tuple[tuple[Place, Place], ...]


AnyLine: TypeAlias = (
    AppendLine
    | StreamLine
    | EntryLine
    | GapLine
    | TermLine
    | StoppedLine
    | RegisterLine
    | ClaimLine
    | HandleLine
    | SettleLine
    | ReadLine
    | TaskLine
    | EffectLine
    | PublishLine
    | DeliverLine
    | HandOverLine
    | ForkLine
    | LakeLine
)
Numbered: TypeAlias = tuple[int, AnyLine]

DECODER: Final = Decoder(AnyLine)


class MalformedHistory(UsageError):
    """A line is not one of a history."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(line, why)
        self.line = line
        self.why = why

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


def read(file: Iterable[bytes]) -> Iterator[Numbered]:
    """The lines with their numbers, from 1; empty ones are left out."""
    return _decoded((number, line) for number, line in enumerate(file, 1) if not line.isspace())


def read_terms(file: Iterable[bytes]) -> list[TermLine]:
    """The terms of a history in order: they say what a position in any of its lines means."""
    found = (line for _, line in _decoded(each for each in enumerate(file, 1) if b'"term"' in each[1]))
    return sorted((line for line in found if isinstance(line, TermLine)), key=lambda term: term.epoch)


def _decoded(lines: Iterable[tuple[int, bytes]]) -> Iterator[Numbered]:
    decode = DECODER.decode
    for number, line in lines:
        try:
            yield number, decode(line)
        except (DecodeError, UnicodeDecodeError) as error:
            raise MalformedHistory(number, str(error)) from error
