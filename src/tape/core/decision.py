"""A decision: what a model was asked and what it answered, recorded so that it is asked once."""

from dataclasses import dataclass

from tape.core.ids import RunId
from tape.core.text import check_body, check_count, check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionSpec:
    """What is recorded of a decision at one index of a run."""

    run_id: RunId
    decision_index: int
    model: str = ""
    request_json: str = ""
    response_json: str = ""
    rationale: str = ""
    policy_version: str = ""

    def __post_init__(self) -> None:
        check_count("decision_index", self.decision_index)
        for name in ("model", "policy_version"):
            check_name(name, getattr(self, name), may_be_empty=True)
        for name in ("request_json", "response_json", "rationale"):
            check_body(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(DecisionSpec):
    """The decision at one index of a run, and when it was recorded; the first one stays."""

    ts_ms: int = 0
