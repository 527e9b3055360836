"""The frames of a stream: entries, and synthetic frames about the stream itself, which have no id."""

from base64 import b64decode
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import force_setattr

from tape.core.event import EVENT, JSON

Position = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]


class Delivered(
    Struct, frozen=True, kw_only=True, rename={"payload": "data", "originator_client_id": "originatorClientId"}
):
    """An entry as a stream delivers it; its `id` (the seq, or across runs the global_seq) is the cursor."""

    id: Position
    type: str
    payload: Any
    run_id: str
    seq: Position
    global_seq: Position
    kind: str = EVENT
    subject: str = ""
    ts_ms: int = 0
    schema_version: int = 1
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    originator_client_id: str | None = None
    content_type: str = JSON

    def __post_init__(self) -> None:
        if self.content_type != JSON and isinstance(self.payload, str):
            force_setattr(self, "payload", b64decode(self.payload, validate=True))


class ReplayComplete(Struct, frozen=True, kw_only=True, rename="camel"):
    """History has been sent; what follows is live."""

    replayed_count: int
    last_event_id: int | None = None


class SlowClientWarning(Struct, frozen=True, kw_only=True, rename="camel"):
    """The reader is close to a cap; sent once per episode."""

    queue_size: int
    max_queued: int
    queued_bytes: int
    max_queued_bytes: int
    last_event_id: int | None = None
    threshold: str


class ClientEvicted(Struct, frozen=True, kw_only=True, rename="camel"):
    """The reader was too slow and the stream ends; nothing after `dropped_after` was delivered."""

    reason: str
    dropped_after: int | None = None


class StateResyncRequired(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """History between the two ids is gone, or the cursor was of another journal; the stream continues.

    `epoch` is set if it is no longer the one of the response header: what follows is of this epoch.
    """

    reason: str
    last_delivered_id: int
    earliest_available_id: int
    epoch: int | None = None


class StreamError(Struct, frozen=True, kw_only=True, rename="camel"):
    """The server failed, and the stream ends."""

    error: str


class Goaway(Struct, frozen=True, kw_only=True, rename="camel"):
    """The server is shutting down and the stream ends; the client reconnects after the given delay."""

    reconnect_after_ms: int


class RunEnd(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", tag="run_end"):
    """The run is closed and everything up to `last_event_id` was sent; this is the last frame of its stream.

    A stream that ends without it was interrupted. `reason` is `closed`, or `reaped` when the store no longer holds the
    run. `state` is the state in the run's ledger, or `complete` for a run without one.
    """

    v: Literal[1] = 1
    reason: str
    last_event_id: int
    state: str


class Checkpoint(Struct, frozen=True):
    """A cursor without an entry: nothing up to it is for this reader."""

    id: int


Synthetic: TypeAlias = (
    ReplayComplete | SlowClientWarning | ClientEvicted | StateResyncRequired | StreamError | Goaway | RunEnd
)
Frame: TypeAlias = Delivered | Synthetic | Checkpoint

SYNTHETIC: Final[dict[str, type[Synthetic]]] = {
    "replay_complete": ReplayComplete,
    "slow_client_warning": SlowClientWarning,
    "client_evicted": ClientEvicted,
    "state_resync_required": StateResyncRequired,
    "stream_error": StreamError,
    "goaway": Goaway,
    "run_end": RunEnd,
}
NAMES: Final[dict[type[Synthetic], str]] = {value: name for name, value in SYNTHETIC.items()}
