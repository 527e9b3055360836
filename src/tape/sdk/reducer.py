"""State as a fold over a stream; after a gap it ignores deltas until it was resynchronized."""

from collections.abc import Callable, Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from tape.sdk.cursor import Cursor
from tape.wire.frames import NAMES, Checkpoint, Delivered, Frame, StateResyncRequired

S = TypeVar("S")

RESYNC_PASSTHROUGH_TYPES: Final = frozenset(
    "state_resync_required client_evicted stream_error goaway run_end"
    " session_snapshot session_died session_closed recording_degraded".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Generic[S]):
    """The state of a fold.

    While it awaits a resync its value may lack lost events, so only frames about the stream, the end of a run and
    complete snapshots change it. The cursor moves all the same. The consumer loads the complete state and calls
    `resynced`.
    """

    value: S
    cursor: int | None = None
    awaiting_resync: bool = False

    def resynced(self, value: S) -> "State[S]":
        return replace(self, value=value, awaiting_resync=False)


@dataclass(frozen=True, slots=True)
class Reducer(Generic[S]):
    """Applies frames to a state without changing it in place; `fold` gets every frame that may change the value."""

    fold: Callable[[S, Frame], S]
    passthrough: AbstractSet[str] = RESYNC_PASSTHROUGH_TYPES

    def __call__(self, state: State[S], frame: Frame) -> State[S]:
        is_awaiting = state.awaiting_resync or isinstance(frame, StateResyncRequired)
        value = self.fold(state.value, frame) if self._applies(frame, is_awaiting) else state.value
        cursor = Cursor(state.cursor).after(frame, None).place
        return State(value=value, cursor=cursor, awaiting_resync=is_awaiting)

    def _applies(self, frame: Frame, is_awaiting: bool) -> bool:
        if isinstance(frame, Checkpoint):
            return False
        name = frame.type if isinstance(frame, Delivered) else NAMES[type(frame)]
        return not is_awaiting or name in self.passthrough
