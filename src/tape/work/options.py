"""The options that a decorator accepts besides its pattern."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypedDict

from tape.core.errors import UsageError
from tape.core.reaction import HandlerKind
from tape.work.deadline import check_deadline


class Options(TypedDict, total=False):
    """The options of a reaction; `agent` and `publish` choose its kind.

    An attempt that takes longer than `timeout` (an hour; a number is in seconds) has failed. `process` runs the
    function in a child process, which is killed at the timeout.
    """

    reaction_id: str
    name: str
    predicate: str
    agent: str
    publish: str
    max_concurrency: int
    rate_limit_per_s: int
    debounce_ms: int
    retry_max: int
    retry_backoff_ms: int
    dlq_after_n: int
    num_shards: int
    bootstrap_from_head: bool
    timeout: timedelta | float
    process: bool
    batch: int


def definition(pattern: str, options: Options) -> Mapping[str, Any]:
    """The options as the fields of a Reaction."""
    agent, publish = options.get("agent"), options.get("publish")
    if agent and publish:
        raise UsageError("a reaction starts an agent or publishes, not both")
    fields: dict[str, Any] = {name: value for name, value in options.items() if name not in _OURS}
    fields["subject_pattern"] = pattern
    if "timeout" in options:
        fields["timeout_ms"] = check_deadline(options["timeout"]) // timedelta(milliseconds=1)
    fields["predicate_cel"] = options.get("predicate", "")
    if agent:
        fields |= {"handler_kind": HandlerKind.AGENT, "agent_app": agent}
    elif publish:
        fields |= {"handler_kind": HandlerKind.PUBLISH, "publish_target": publish}
    return fields


_OURS = {"agent", "batch", "predicate", "process", "publish", "timeout"}
