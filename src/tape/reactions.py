"""Reactions as users write them: decorators collect them, and a dispatcher registers and runs them.

`@on("/a/**")` makes the function under it a handler. With `agent=` or `publish=` a match starts an agent or is
published instead, and the function is not called. Nothing happens before `register_all` or `run_dispatcher`.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, Unpack

from tape.core.event import Entry
from tape.core.reaction import Reaction
from tape.core.subject import ONE, REST, escape
from tape.work.answers import Dead, Retry
from tape.work.collected import collected
from tape.work.envelope import Envelope
from tape.work.options import Options, definition

__all__ = [
    "Dead",
    "Envelope",
    "Retry",
    "collected",
    "on",
    "on_decision_recorded",
    "on_effect_confirmed",
    "on_effect_failed",
    "on_effect_unknown",
    "on_gate",
    "on_run",
    "on_value_change",
    "on_value_deleted",
    "register_all",
    "run_dispatcher",
    "run_outbox_relay",
    "run_pubsub_bridge",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def on(pattern: str, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """A reaction to the entries that a pattern matches; returns the function unchanged."""
    fields = definition(pattern, options)

    def decorate(function: Function) -> Function:
        collected.add(function, options.get("batch", 1), fields, is_process=options.get("process", False))
        return function

    return decorate


def on_value_change(
    namespace: str, key: str | None = None, **options: Unpack[Options]
) -> Callable[[Function], Function]:
    """A reaction to each new value in a namespace, or of one of its keys."""
    return on(_pattern("value", "changed", namespace, key), **options)


def on_value_deleted(
    namespace: str, key: str | None = None, **options: Unpack[Options]
) -> Callable[[Function], Function]:
    """A reaction to each value that is deleted."""
    return on(_pattern("value", "deleted", namespace, key), **options)


def on_effect_confirmed(tool: str | None = None, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """A reaction to confirmed effects of a tool, or of any."""
    return on(_pattern("effect", "confirmed", tool, None), **options)


def on_effect_failed(tool: str | None = None, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """A reaction to failed effects."""
    return on(_pattern("effect", "failed", tool, None), **options)


def on_effect_unknown(tool: str | None = None, **options: Unpack[Options]) -> Callable[[Function], Function]:
    """A reaction to effects whose outcome is unknown."""
    return on(_pattern("effect", "unknown", tool, None), **options)


def on_decision_recorded(
    decision_index: int | None = None, **options: Unpack[Options]
) -> Callable[[Function], Function]:
    """A reaction to each recorded decision, or to those with one index."""
    index = ONE if decision_index is None else str(decision_index)
    return on(f"/tape/decision/recorded/{ONE}/{index}", **options)


def on_gate(
    gate: str | None = None, verb: str = "released", **options: Unpack[Options]
) -> Callable[[Function], Function]:
    """A reaction to a gate that was released, or that a run waits for."""
    return on(_pattern("gate", verb, gate, None), **options)


def on_run(
    status: str = "terminal", app: str | None = None, **options: Unpack[Options]
) -> Callable[[Function], Function]:
    """A reaction to runs that reach a status."""
    return on(_pattern("run", status.lower(), app, None), **options)


def register_all(url: str | None = None) -> list[Reaction]:
    """Registers the collected reactions with the store or server at a URL, by default that of `tape.connect`."""
    import anyio

    from tape.compose import register

    reactions = [each.reaction for each in collected]
    anyio.run(register, url, reactions)
    return reactions


def run_dispatcher(
    url: str | None = None,
    register: bool = True,
    *,
    owner: str | None = None,
    once: bool = False,
    claim_max: int = 16,
    lease_ms: int = 60_000,
) -> int:
    """Matches and handles until a signal, then finishes what has begun; returns how many tasks it settled.

    With `once` it stops when nothing is due.
    """
    import anyio

    from tape.compose import dispatch
    from tape.matcher.dispatcher import config_of

    lease = timedelta(milliseconds=lease_ms)
    config = config_of(collected, is_registering=register, owner=owner, slots=claim_max, lease=lease)
    return anyio.run(dispatch, url, config, once)


def run_pubsub_bridge(
    url: str | None = None,
    *,
    project: str,
    topic: str,
    reaction_id: str = "",
    owner: str | None = None,
    once: bool = False,
    claim_max: int = 32,
    lease_ms: int = 60_000,
) -> int:
    """Publishes the messages of reactions to a Pub/Sub topic; returns how many.

    It is a dispatcher: it ends at a signal, or with `once` when nothing is due.
    """
    import anyio

    from tape.compose import dispatch
    from tape.matcher.dispatcher import pubsub_config

    lease = timedelta(milliseconds=lease_ms)
    config = pubsub_config(f"pubsub://{project}/{topic}", reaction_id, owner=owner, slots=claim_max, lease=lease)
    return anyio.run(dispatch, url, config, once)


def run_outbox_relay(
    url: str | None = None,
    *,
    to: str | Callable[[Entry], object],
    cursor_path: str | Path = "outbox.cursor.json",
    subject_pattern: str = "/tape/**",
    once: bool = False,
) -> int:
    """Relays the journal's entries to a target or a function, in order and at least once; returns how many.

    Its position is in the cursor file; an older file with a time is converted. It ends at a signal, or with `once` at
    the head.
    """
    import anyio

    from tape.compose import forward

    return anyio.run(forward, url, to, Path(cursor_path), subject_pattern, once)


def _pattern(kind: str, verb: str, first: str | None, second: str | None) -> str:
    """The subjects of a kind and verb with these dimensions."""
    given = [escape(each) for each in (first, second) if each is not None]
    rest = [] if second is not None else [REST]
    return "/".join(["", "tape", kind, verb, *given, *rest])
