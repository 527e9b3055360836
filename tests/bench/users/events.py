"""The event that every side publishes: about 300 bytes of JSON, as an order's would have."""

import json
from uuid import uuid4

import tape
from tape.core.codec import JsonValue

TEXT = "The quick brown fox jumps over the lazy dog and goes on to the next line. " * 3
PAYLOAD: dict[str, JsonValue] = {"number": 17, "price": 12.5, "status": "confirmed", "text": TEXT, "tags": ["a", "b"]}
PAYLOAD_JSON = json.dumps(PAYLOAD)
TYPE = "placed"


def event(run_id: str) -> tape.Event:
    return tape.Event(run_id=run_id, type=TYPE, payload=PAYLOAD)


def body(batch: int) -> bytes:
    """The body of an HTTP request: one event, or a list of events."""
    one = {"type": TYPE, "payload": PAYLOAD}
    return json.dumps(one if batch == 1 else [one] * batch).encode()


def new_runs(count: int) -> list[str]:
    """Names of runs that nobody has used."""
    prefix = uuid4().hex[:12]
    return [f"{prefix}-{number}" for number in range(count)]
