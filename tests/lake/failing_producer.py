"""A producer that emits two events and then fails if its mutation asks for it."""

from collections.abc import Sequence
from typing import Any

import tape
from tape.core.event import Entry


@tape.producer("grumpy")
def grumpy(prefix: Sequence[Entry], mutation: Any, n_turns: int, sink: Any) -> None:
    sink.emit(tape.Event(run_id=sink.run_id, type="word", payload={"after": len(prefix), **mutation}))
    sink.emit(tape.Event(run_id=sink.run_id, type="word", payload={"run": sink.run_id, "n": n_turns}))
    if mutation["mood"] == "bad":
        raise RuntimeError("no")
