"""A ledger: cells of one type, and the transitions decided on them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Generic, TypeVar

from tape.core import codec, subject as subjects
from tape.core.app import ANY
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import Conflict, TapeError, TooLarge, quoted
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.page import ANSWER_BYTES
from tape.core.ports import CellSnapshot, WorkFilter
from tape.core.sequence import Cell, CellChange, CellId

IN_A_RUN: Final = 120  # fits into a key together with the run's id
IN_A_LIST: Final = 100  # fits into a place together with the run's id and a number
LAST_NUMBER: Final = (1 << 63) - 1
OF_FOUR: Final = 62

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


class Ledger(Generic[S]):
    """Reads and changes the cells of one ledger as values of one type, which are listed in the order of `place`."""

    def __init__(self, name: str, shape: type[S], place: Callable[[S], str | None] = lambda _: None) -> None:
        self.name = name
        self._shape = shape
        self._place = place

    def at(self, key: str) -> CellId:
        return CellId(self.name, key)

    def find(self, snapshot: CellSnapshot, key: str) -> S | None:
        cell = snapshot.cells.get(self.at(key))
        return None if cell is None else self.state(cell)

    def state(self, cell: Cell) -> S:
        return codec.decode_state(cell.state_json, self._shape)

    def states(self, cells: Mapping[CellId, Cell]) -> Iterator[S]:
        return (self.state(cell) for cell_id, cell in cells.items() if cell_id.ledger == self.name)

    def change(
        self,
        snapshot: CellSnapshot,
        key: str,
        state: S,
        status: str,
        due_at_ms: int | None = None,
        served_by: tuple[str, str] | None = None,
    ) -> CellChange:
        """The cell's next state, decided on this snapshot; `served_by` is the app and kind of work.

        Raises TooLarge if no answer could carry it.
        """
        cell = snapshot.cells.get(self.at(key))
        seen = 0 if cell is None else cell.version
        text = codec.encode_state(state)
        app, kind = (None, None) if served_by is None else map(part, served_by)
        change = CellChange(
            id=self.at(key), seen=seen, status=status, state_json=text, due_at_ms=due_at_ms, app=app, kind=kind,
            place=self._place(state),
        )  # fmt: skip
        if len(text) > ANSWER_BYTES // 4 and change.cell.size > ANSWER_BYTES:
            raise TooLarge(
                f"the texts of {self.name} {quoted(key)} take {change.cell.size:,} bytes together as JSON, and an "
                f"answer carries {ANSWER_BYTES:,}; store a large one elsewhere and refer to it"
            )
        return change


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEvent:
    """The journal entry of a change."""

    run_id: RunId
    kind: str
    verb: str
    dims: tuple[str, ...]
    payload: JsonValue

    def to_event(self, caller: Caller) -> Event:
        return Event(
            run_id=self.run_id,
            payload=self.payload,
            type=self.verb,
            kind=self.kind,
            subject=subjects.canonical(self.kind, self.verb, *self.dims),
            schema_version=caller.schema_version,
            cause=caller.cause,
            trace=caller.trace,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Generic[T]):
    """A decided change: result, changed cells and entries, sent as one request.

    `opens` allows entries in a run that may be closed; `closes` names a run to close afterwards. With `error`, the
    caller gets that error although the changes were written.
    """

    result: T
    cells: tuple[CellChange, ...] = ()
    events: tuple[LedgerEvent, ...] = ()
    opens: bool = False
    closes: RunId | None = None
    error: TapeError | None = None

    def returning(self, result: U) -> "Transition[U]":
        """The same changes with another result."""
        return Transition(
            result=result, cells=self.cells, events=self.events, opens=self.opens, closes=self.closes, error=self.error
        )


def check_repeat(what: str, first: object, again: object) -> None:
    """Refuses a repeated request that says something else than the first one, which stays."""
    if first != again:
        raise Conflict(f"{what} was already recorded and says something else, which stays; read it and decide again")


def part(text: str, longest: int = IN_A_RUN) -> str:
    """A text as a part of a cell's key; a long one is replaced by its hash."""
    escaped = subjects.escape(text)
    return escaped if len(escaped) <= longest else f"#{sha256(text.encode()).hexdigest()[:40]}"


def parts(*texts: str) -> str:
    """Up to four texts as one key; `under` finds all keys with the same first ones."""
    return "/".join(part(text, OF_FOUR) for text in texts)


def ascending(number: int) -> str:
    """A number as a part of a place, in ascending order."""
    return f"{number:019}"


def descending(number: int) -> str:
    """A number as a part of a place, in descending order."""
    return ascending(LAST_NUMBER - number)


def digest(*names: str) -> str:
    """A hash of names, for the id of a system run; names that differ give another one, whatever they hold."""
    return sha256("/".join(map(subjects.escape, names)).encode()).hexdigest()[:32]


def request_digest(*arguments: object) -> str:
    """A hash of what a request says, to compare a repetition with the first one."""
    return sha256(codec.encode_state(arguments).encode()).hexdigest()


def work_filter(app: str, kinds: Collection[str]) -> WorkFilter:
    """The work that a worker of an app can serve: of these kinds, of its own app or of any."""
    apps = dict.fromkeys((part(app), part(ANY)))
    return WorkFilter(tuple(apps), tuple(dict.fromkeys(map(part, kinds))))
