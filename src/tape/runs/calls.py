"""Calls that carry a key: what came of the first is told to every repetition."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, TypeVar

from tape.core import codec
from tape.core.errors import KeyConflict
from tape.core.ports import Sight
from tape.core.sequence import CellId
from tape.core.text import check_name
from tape.runs.ledger import Ledger, Step, part

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a key stands for: the call it came with, and the answer."""

    digest: str
    answer_json: str


CALLS: Final = Ledger("call", Call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """A call that may be repeated under its key; without one, each call is a new one."""

    key: str | None
    digest: str = ""

    @classmethod
    def of(cls, key: str | None, *said: object) -> "Keyed":
        if key is not None:
            check_name("a key", key)
        return cls(key=key, digest=sha256(codec.encode_state(said).encode()).hexdigest())

    @property
    def ids(self) -> tuple[CellId, ...]:
        return () if self.key is None else (CALLS.at(part(self.key)),)

    def answer(self, sight: Sight, shape: type[T]) -> Step[T] | None:
        """What the call came to the first time, if there was one; the same key for another call is refused."""
        found = None if self.key is None else CALLS.find(sight, part(self.key))
        if found is None or self.key is None:
            return None
        if found.digest != self.digest:
            raise KeyConflict(self.key)
        return Step(result=codec.decode_state(found.answer_json, shape))

    def remember(self, sight: Sight, step: Step[T]) -> Step[T]:
        """The step, with its answer kept under the key."""
        if self.key is None:
            return step
        call = Call(digest=self.digest, answer_json=codec.encode_state(step.result))
        kept = CALLS.change(sight, part(self.key), call, "answered", sight.now_ms)
        return replace(step, cells=(*step.cells, kept))
