"""Calls with an idempotency key: a repeated call gets the answer of the first one."""

from dataclasses import dataclass, replace
from typing import Final, TypeVar

from tape.core import codec
from tape.core.errors import KeyConflict
from tape.core.ports import CellSnapshot
from tape.core.sequence import CellId
from tape.core.text import check_name
from tape.runs.ledger import Ledger, Transition, part, request_digest

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCall:
    """What a key stands for: a digest of the call's arguments, its answer, and whether it changed something."""

    digest: str
    answer_json: str
    is_changed: bool = True


CALLS: Final = Ledger("call", LedgerCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedCall:
    """A call that may be repeated under its key; without a key every call is new."""

    key: str | None
    digest: str = ""

    @classmethod
    def of(cls, key: str | None, *arguments: object) -> "KeyedCall":
        if key is not None:
            check_name("a key", key)
        return cls(key=key, digest=request_digest(*arguments))

    @property
    def ids(self) -> tuple[CellId, ...]:
        return () if self.key is None else (CALLS.at(part(self.key)),)

    def answer(self, snapshot: CellSnapshot, shape: type[T]) -> Transition[T] | None:
        """The stored answer of an earlier call; the same key with other arguments is refused."""
        found = None if self.key is None else CALLS.find(snapshot, part(self.key))
        if found is None or self.key is None:
            return None
        if found.digest != self.digest:
            raise KeyConflict(self.key)
        return Transition(result=codec.decode_state(found.answer_json, shape))

    def has_changed(self, snapshot: CellSnapshot) -> bool:
        """Whether the earlier call has changed something."""
        found = None if self.key is None else CALLS.find(snapshot, part(self.key))
        return found is not None and found.is_changed

    def store_answer(self, snapshot: CellSnapshot, transition: Transition[T]) -> Transition[T]:
        """The transition, with its answer stored under the key."""
        if self.key is None:
            return transition
        answer = codec.encode_state(transition.result)
        call = LedgerCall(digest=self.digest, answer_json=answer, is_changed=bool(transition.cells))
        kept = CALLS.change(snapshot, part(self.key), call, "answered", snapshot.now_ms)
        return replace(transition, cells=(*transition.cells, kept))
