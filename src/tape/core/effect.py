"""An effect: a call to the outside world, recorded before it is made."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tape.core import codec
from tape.core.app import check_app
from tape.core.claim import UNCLAIMED, Claim
from tape.core.errors import TooLarge, UsageError
from tape.core.ids import RunId
from tape.core.text import MAX_NAME, check_body, check_count, check_name

ATTEMPTS: Final = 5
MAX_TEXTS: Final = (3 << 20) - (128 << 10)  # an answer carries them together with the error of the last dispatch


class EffectStatus(StrEnum):
    PENDING = "pending"
    CONFIRMED = "confirmed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Semantics(StrEnum):
    IDEMPOTENT = "idempotent"
    NON_IDEMPOTENT = "non_idempotent"
    OBSERVE_ONLY = "observe_only"


class DispatchMode(StrEnum):
    INLINE = "inline"
    OUTBOX = "outbox"


class Resolution(StrEnum):
    """What a check of the outside world has shown about an effect."""

    CONFIRMED = "confirmed"
    FAILED = "failed"
    ABSENT = "absent"
    DUPLICATE = "duplicate"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compensation:
    """How to undo an effect, recorded before the effect happens: the name of a compensator that the app has registered.

    Without an app it is the effect's; without either, workers of any app may run it.
    """

    kind: str
    payload_json: str = ""
    compensator_ref: str = ""
    max_attempts: int = ATTEMPTS
    app: str = ""

    def __post_init__(self) -> None:
        check_name("kind", self.kind)
        check_body("payload_json", self.payload_json)
        check_name("compensator_ref", self.compensator_ref, may_be_empty=True)
        check_count("max_attempts", self.max_attempts, 1)
        check_app(self.app)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSpec:
    """A request for an effect. A combination that a crash could repeat by mistake is refused."""

    run_id: RunId
    tool: str
    decision_index: int = -1
    call_index: int = 0
    request_json: str = ""
    custom_key: str = ""
    semantics: Semantics = Semantics.IDEMPOTENT
    dispatch_mode: DispatchMode = DispatchMode.INLINE
    business_key: str = ""
    connector: str = ""
    scope: str = ""
    compensation: Compensation | None = None
    app: str = ""

    def __post_init__(self) -> None:
        check_name("tool", self.tool)
        check_count("decision_index", self.decision_index, -1)
        check_count("call_index", self.call_index)
        check_body("request_json", self.request_json)
        check_app(self.app)
        for name in ("custom_key", "business_key", "connector", "scope"):
            check_name(name, getattr(self, name), may_be_empty=True)
        if self.semantics is Semantics.NON_IDEMPOTENT and self.dispatch_mode is not DispatchMode.OUTBOX:
            raise UsageError("a NON_IDEMPOTENT effect requires dispatch mode OUTBOX: inline, a crash would repeat it")
        if self.business_key and not self.connector:
            raise UsageError("a business_key requires a connector: it is unique within one")

    @property
    def idempotency_key(self) -> str:
        key = self.custom_key or f"{self.run_id}/decision-{self.decision_index}/{self.tool}/{self.call_index}"
        if len(key) > MAX_NAME:
            raise UsageError(f"the effect's key is over {MAX_NAME} characters; give a custom_key")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """An effect's state."""

    run_id: RunId
    idempotency_key: str
    tool: str
    status: EffectStatus
    decision_index: int = -1
    request_json: str = ""
    response_json: str = ""
    error_json: str = ""
    semantics: Semantics = Semantics.IDEMPOTENT
    dispatch_mode: DispatchMode = DispatchMode.INLINE
    business_key: str = ""
    connector: str = ""
    scope: str = ""
    external_ref: str = ""
    began_at_ms: int = 0
    settled_at_ms: int = 0
    claim: Claim = UNCLAIMED
    dispatch_attempts: int = 0
    next_dispatch_at_ms: int = 0
    last_dispatch_error: str = ""
    compensation: Compensation | None = None
    app: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether its outcome is final."""
        return self.status in (EffectStatus.CONFIRMED, EffectStatus.FAILED)

    def check_texts(self) -> None:
        """Raises TooLarge if no answer could carry the effect."""
        undo = "" if self.compensation is None else self.compensation.payload_json
        size = sum(map(codec.size, (self.request_json, self.response_json, self.error_json, undo)))
        if size > MAX_TEXTS:
            raise TooLarge(
                "request_json, response_json, error_json and the compensation's payload_json of an effect are at most "
                f"{MAX_TEXTS:,} bytes together as JSON, not {size:,}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectClaim:
    """The result of claiming an effect; a caller that did not get it sees the current owner."""

    effect: Effect
    is_acquired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What was seen outside, and how to undo the effect if it happened twice."""

    resolution: Resolution
    external_ref: str = ""
    response_json: str = ""
    error_json: str = ""
    compensate_on_duplicate: Compensation | None = field(default=None)

    def __post_init__(self) -> None:
        check_name("external_ref", self.external_ref, may_be_empty=True)
        check_body("response_json", self.response_json)
        check_body("error_json", self.error_json)
