"""A process that runs a durable function until it gets a signal."""

import sys
from pathlib import Path

import tape
from tests.process.lifetime import end_with_parent


@tape.effect()
def note(path: str) -> str:
    Path(path).write_text(tape.idempotency_key())
    return "noted"


def work(run: object) -> object:
    return note(str(sys.argv[2]))


if __name__ == "__main__":
    end_with_parent()
    tape.run_agent("app", work, sys.argv[1])
