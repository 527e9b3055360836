"""Events of the arena, published over HTTP."""

from typing import Any

import httpx

from tape.cli.demo.arena.producer import arena
from tape.core.event import Event

AT_ONCE = 500


class RecordingSink:
    """A sink that records events as HTTP bodies."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: Event) -> None:
        self.events.append({"type": event.type, "payload": event.payload, "subject": event.subject})


def arena_events(n_turns: int) -> list[dict[str, Any]]:
    """The events of some turns of the arena, 20 each."""
    sink = RecordingSink()
    arena((), None, n_turns, sink)
    return sink.events


def open_run(http: httpx.Client, run_id: str, label: str | None = None, **meta: str) -> None:
    http.post("/runs", json={"run_id": run_id, "label": label, **meta}).raise_for_status()


def publish(http: httpx.Client, run_id: str, events: list[dict[str, Any]]) -> None:
    for first in range(0, len(events), AT_ONCE):
        http.post(f"/runs/{run_id}/events", json=events[first : first + AT_ONCE]).raise_for_status()
