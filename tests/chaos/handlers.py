"""What `tape work` runs in the chaos: a handler that records when it begins and ends."""

import os
from pathlib import Path

import anyio

import tape
from tape.checker.lines import HandleLine, Step
from tape.work.envelope import Envelope
from tests.chaos.names import PATTERN, REACTION
from tests.process.recorder import Recorder

HANDLE_S = 0.2  # long enough that a worker which is killed has tasks

records = Recorder(Path(os.environ["CHAOS_RECORDS"]))


def note(step: Step, envelope: Envelope) -> None:
    records.write(
        HandleLine, step=step, reaction_id=envelope.reaction_id, task_id=envelope.task_id, attempt=envelope.attempt,
        global_seq=envelope.global_seq,
    )  # fmt: skip


@tape.on(PATTERN, reaction_id=REACTION, max_concurrency=32, dlq_after_n=1_000, retry_max=1_000, retry_backoff_ms=50)
async def count(envelope: Envelope) -> None:
    note("invoke", envelope)
    try:
        await anyio.sleep(HANDLE_S)
    except anyio.get_cancelled_exc_class():
        note("unknown", envelope)
        raise
    note("ok", envelope)
