"""Producers that a server of the tests loads."""

from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import Any

import tape
from tape.core.codec import JsonValue


@tape.producer("counter")
def count(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    """Emits the number of each turn, the length of the prefix and the mutation."""
    for turn in range(1, n_turns + 1):
        turn_payload: JsonValue = {"turn": turn, "after": len(prefix), "mutation": mutation}
        sink.emit(tape.Event(run_id=sink.run_id, type="turn", payload=turn_payload))


@tape.producer("endless")
def go_on(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    """Never finishes by itself; writes to a file how it ended."""
    try:
        while True:
            sink.emit(tape.Event(run_id=sink.run_id, type="turn", payload=None)).result()
            sleep(0.005)
    except Exception as error:
        Path("ended.txt").write_text(type(error).__name__)
        raise


@tape.producer("broken")
def fail(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    sink.emit(tape.Event(run_id=sink.run_id, type="turn", payload=1))
    raise ValueError("out of \x00 dice")


@tape.producer("leaver")
def leave(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    raise SystemExit(3)


@tape.producer("stranger")
def intrude(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    sink.emit(tape.Event(run_id="somebody-elses", payload=1))


@tape.producer("flood")
def flood(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    """More than fits into any request, as fast as it can."""
    for number in range(n_turns * 50):
        sink.emit(tape.Event(run_id=sink.run_id, type="flood", payload={"number": number, "text": "x" * 5_000}))


@tape.producer("exhausted")
def run_out(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    next(iter(()))


@tape.producer("deaf")
def wait(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    """Waits for a slow answer, as of a model."""
    Path("deaf.txt").touch()
    sleep(600)


@tape.producer("steady")
def keep_on(prefix: Sequence[tape.Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
    """A turn every twentieth of a second."""
    for turn in range(1, n_turns + 1):
        sink.emit(tape.Event(run_id=sink.run_id, type="turn", payload={"turn": turn}))
        sleep(0.05)
