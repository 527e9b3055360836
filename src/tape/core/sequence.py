"""Decides requests in order, each accepted as a whole or not at all, and gives them positions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple

from tape.core import child
from tape.core.errors import (
    ExpectedSeqConflict,
    KeyConflict,
    RunClosed,
    RunNotFound,
    TapeError,
    TooLarge,
    UsageError,
    VersionConflict,
    quoted,
)
from tape.core.event import Entry, Event
from tape.core.fork import Fork
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.run import Head

MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 8 << 20
MAX_KEY_LENGTH: Final = 256
CELL_BYTES: Final = 1024  # more than the names and empty fields of a cell's state in an answer

_is_no_text = re.compile("[\0\ud800-\udfff]").search
_set = object.__setattr__


class CellId(NamedTuple):
    ledger: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A ledger's row; a change names the version it was decided on."""

    version: int
    status: str
    state_json: str
    due_at_ms: int | None = None
    app: str | None = None
    kind: str | None = None
    place: str | None = None

    @property
    def size(self) -> int:
        """An upper bound of its bytes in an answer."""
        return CELL_BYTES + len(self.state_json.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """A cell's next state, decided on the version `seen` (0: the cell does not exist).

    `app` and `kind` say which workers may serve the cell. `place` orders the cells of a ledger in lists; a cell without
    one is in no list.
    """

    id: CellId
    seen: int
    status: str
    state_json: str
    due_at_ms: int | None = None
    app: str | None = None
    kind: str | None = None
    place: str | None = None

    def __post_init__(self) -> None:
        if not _is_count(self.seen) or not (self.due_at_ms is None or _is_count(self.due_at_ms)):
            raise UsageError("a cell's version and due time are whole numbers from 0 to 2^63 - 1")
        names = (*self.id, self.status, self.app or "", self.kind or "", self.place or "")
        if max(map(len, names)) > MAX_KEY_LENGTH:
            raise UsageError(
                f"a cell's ledger, key, status, app, kind and place are at most {MAX_KEY_LENGTH} characters each"
            )
        if any(map(_is_no_text, (*names, self.state_json))):
            raise UsageError(f"cell {quoted(self.id.key)} holds U+0000 or a lone surrogate, which no store can keep")

    @property
    def cell(self) -> Cell:
        return Cell(
            version=self.seen + 1, status=self.status, state_json=self.state_json, due_at_ms=self.due_at_ms,
            app=self.app, kind=self.kind, place=self.place,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AppendRequest:
    """Events to append and cells to change, together or not at all; with a fork the events begin a new run."""

    events: tuple[Event, ...] = ()
    cells: tuple[CellChange, ...] = ()
    key: str | None = None
    expected_seq: Seq | None = None
    opens: bool = False
    fork: Fork | None = None
    runs: Mapping[RunId, str] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, "runs", {event.run_id: event.content_type for event in self.events})
        _set(self, "size", sum(event.size for event in self.events) + sum(len(cell.state_json) for cell in self.cells))
        self._check_size()
        if self.key is not None and not _is_key(self.key):
            raise UsageError(f"a key is 1 to {MAX_KEY_LENGTH} printable characters, not {quoted(self.key)}")
        if self.expected_seq is not None and not _is_count(self.expected_seq):
            raise UsageError(f"expected_seq is the run's last seq, not {quoted(self.expected_seq)}")
        if self.expected_seq is not None and len(self.runs) != 1:
            raise UsageError(f"expected_seq is for one run, not {len(self.runs)}")
        if len(self.events) > 1 and any(event.content_type != self.runs[event.run_id] for event in self.events):
            raise UsageError("the events of a run have one content_type")
        if len(self.cells) > 1 and len({change.id for change in self.cells}) != len(self.cells):
            raise UsageError("a request changes each cell once")
        if self.fork is not None:
            child.check_fork(self.fork, self.events, self.expected_seq)

    def _check_size(self) -> None:
        if not self.events and not self.cells:
            raise UsageError("a request needs at least one event")
        if len(self.events) > MAX_EVENTS:
            raise TooLarge(f"a request is at most {MAX_EVENTS:,} events, not {len(self.events):,}")
        if self.size > MAX_BYTES:
            raise TooLarge(f"a request is at most {MAX_BYTES:,} bytes, not {self.size:,}")

    @property
    def is_one_event(self) -> bool:
        """Whether it is one event and only the state of its run can refuse it."""
        is_free = self.key is None and self.expected_seq is None and self.fork is None and not self.cells
        return is_free and len(self.events) == 1 and self.events[0].cause is None

    @cached_property
    def digest(self) -> bytes:
        """A hash of the body: the identity and payload of each event, the cells' states, the fork."""
        body = sha256()
        for event in self.events:
            run_id, kind, name, subject, version, *_, text, blob = event.content
            payload = text.encode() if text is not None else blob or b""
            body.update(f"{run_id}\x1f{kind}\x1f{name}\x1f{subject}\x1f{version}\x1f{len(payload)}\x1f".encode())
            body.update(payload)
        for change in self.cells:
            body.update(f"{change.id}\x1f{change.status}\x1f{change.due_at_ms}\x1f{change.state_json}\x1f".encode())
        if self.fork is not None:
            body.update(f"{self.fork.parent_run_id}\x1f{self.fork.at_seq}\x1f".encode())
        return body.digest()


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What a key stands for: the digest of its body, and the positions it got."""

    digest: bytes
    first: GlobalSeq
    seqs: tuple[Seq, ...]
    ts_ms: int

    def entries(self, events: Sequence[Event], epoch: Epoch) -> list[Entry]:
        """The entries as far as the key record knows them: a key outlives its entries."""
        places = zip(count(self.first), events, self.seqs, strict=False)
        return [event.at(place, seq, self.ts_ms, 0, epoch) for place, event, seq in places]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request was appended; its entries follow each other from `first` on."""

    first: GlobalSeq
    seqs: tuple[Seq, ...]
    depths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The request was appended earlier."""

    record: KeyRecord


@dataclass(frozen=True, slots=True)
class Refused:
    """The request has changed nothing."""

    error: TapeError


AppendVerdict = Accepted | Replayed | Refused


@dataclass(slots=True)
class Known:
    """What the store knows about everything that the requests name; an absent item does not exist."""

    head: GlobalSeq
    ts_ms: int
    heads: Mapping[RunId, Head] = field(default_factory=dict)
    keys: Mapping[str, KeyRecord] = field(default_factory=dict)
    cells: Mapping[CellId, int] = field(default_factory=dict)
    depths: Mapping[GlobalSeq, int] = field(default_factory=dict)


@dataclass(slots=True)
class AppendDecision:
    """A verdict per request, and their changes together."""

    verdicts: list[AppendVerdict] = field(default_factory=list)
    heads: dict[RunId, Head] = field(default_factory=dict)
    keys: dict[str, KeyRecord] = field(default_factory=dict)
    cells: dict[CellId, Cell] = field(default_factory=dict)
    forks: dict[RunId, Fork] = field(default_factory=dict)
    head: GlobalSeq = GlobalSeq(0)


def split_requests(events: Iterable[Event]) -> Iterator[tuple[Event, ...]]:
    """The events in order, in as few requests as hold them."""
    group: list[Event] = []
    size = 0
    for event in events:
        if group and (len(group) == MAX_EVENTS or size + event.size > MAX_BYTES):
            yield tuple(group)
            group, size = [], 0
        group.append(event)
        size += event.size
    if group:
        yield tuple(group)


def _is_count(number: object) -> bool:
    return type(number) is int and 0 <= number < 1 << 63


def _is_key(key: object) -> bool:
    return isinstance(key, str) and 1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable()


def decide(requests: Sequence[AppendRequest], known: Known) -> AppendDecision:
    """Decides requests one after the other, each on the state that the earlier ones leave.

    A refused request takes no number, and later ones do not see it.
    """
    judge = _Judge(known)
    judge.decision.verdicts.extend(map(judge.judge, requests))
    return judge.decision


class _Judge:
    def __init__(self, known: Known) -> None:
        self._known = known
        self._depths = dict(known.depths)
        self.decision = AppendDecision(head=known.head)

    def judge(self, request: AppendRequest) -> AppendVerdict:
        if request.key is not None:
            record = self.decision.keys.get(request.key) or self._known.keys.get(request.key)
            if record is not None:
                return Replayed(record) if record.digest == request.digest else Refused(KeyConflict(request.key))
        error = self._objection(request)
        return self._accept(request) if error is None else Refused(error)

    def _objection(self, request: AppendRequest) -> TapeError | None:
        for run_id, content_type in request.runs.items():
            error = self._run_objection(run_id, content_type, request)
            if error is not None:
                return error
        return self._cell_objection(request) or self._cause_objection(request)

    def _run_objection(self, run_id: RunId, content_type: str, request: AppendRequest) -> TapeError | None:
        head = self._head(run_id)
        if request.fork is not None:
            return child.find_refusal(run_id, request.fork, head, self._head(request.fork.parent_run_id))
        if not request.opens and (head is None or not head.is_open):
            return RunNotFound(run_id) if head is None else RunClosed(run_id)
        last_seq = Seq(0) if head is None else head.last_seq
        if request.expected_seq is not None and request.expected_seq != last_seq:
            return ExpectedSeqConflict(run_id, request.expected_seq, last_seq)
        if head is not None and head.content_type not in (None, content_type):
            return UsageError(f"run {run_id!r} holds {head.content_type}, not {content_type}")
        return None

    def _cell_objection(self, request: AppendRequest) -> TapeError | None:
        for change in request.cells:
            cell = self.decision.cells.get(change.id)
            version = self._known.cells.get(change.id, 0) if cell is None else cell.version
            if version != change.seen:
                return VersionConflict(*change.id, change.seen, version)
        return None

    def _cause_objection(self, request: AppendRequest) -> TapeError | None:
        for event in request.events:
            if event.cause is not None and event.cause > self.decision.head:
                return UsageError(f"cause {event.cause} is beyond the head {self.decision.head}: it names no entry")
        return None

    def _head(self, run_id: RunId) -> Head | None:
        return self.decision.heads.get(run_id) or self._known.heads.get(run_id)

    def _accept(self, request: AppendRequest) -> Accepted:
        seqs = self._number(request) if request.fork is None else self._fork(request, request.fork)
        accepted = Accepted(GlobalSeq(self.decision.head + 1), seqs, self._deepen(request))
        self.decision.head = GlobalSeq(self.decision.head + len(request.events))
        for change in request.cells:
            self.decision.cells[change.id] = change.cell
        if request.key is not None:
            record = KeyRecord(request.digest, accepted.first, accepted.seqs, self._known.ts_ms)
            self.decision.keys[request.key] = record
        return accepted

    def _number(self, request: AppendRequest) -> tuple[Seq, ...]:
        last = {run_id: (self._head(run_id) or Head()).last_seq for run_id in request.runs}
        seqs = []
        for event in request.events:
            last[event.run_id] = seq = Seq(last[event.run_id] + 1)
            seqs.append(seq)
        for run_id, content_type in request.runs.items():
            self.decision.heads[run_id] = _moved(self._head(run_id) or Head(), last[run_id], content_type)
        return tuple(seqs)

    def _fork(self, request: AppendRequest, fork: Fork) -> tuple[Seq, ...]:
        (run_id,), parent = request.runs, self._head(fork.parent_run_id) or Head()
        self.decision.forks[run_id] = fork
        self.decision.heads[run_id] = head = child.head_of_child(fork, parent, len(request.events))
        return tuple(map(Seq, range(fork.at_seq + 1, head.last_seq + 1)))

    def _deepen(self, request: AppendRequest) -> tuple[int, ...]:
        depths = tuple(0 if event.cause is None else self._depths.get(event.cause, 0) + 1 for event in request.events)
        if any(depths):
            self._depths.update((GlobalSeq(self.decision.head + n), depth) for n, depth in enumerate(depths, 1))
        return depths


def _moved(head: Head, last_seq: Seq, content_type: str) -> Head:
    opened_seq = head.opened_seq if head.is_open else head.last_seq
    return Head(last_seq, None, head.floor, opened_seq, content_type, head.lineage)
