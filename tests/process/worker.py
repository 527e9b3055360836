"""A process that matches and handles, and records the begin and the end of each attempt."""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import anyio

from tape.checker.lines import HandleLine, Step
from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.process.lifetime import end_with_parent
from tests.process.recorder import Recorder

POISON = "poison"


def handling(records: Recorder, work_s: float) -> Callable[[Envelope], Awaitable[None]]:
    def note(step: Step, envelope: Envelope) -> None:
        records.write(
            HandleLine, step=step, reaction_id=envelope.reaction_id, task_id=envelope.task_id,
            attempt=envelope.attempt, global_seq=envelope.global_seq,
        )  # fmt: skip

    async def handle(envelope: Envelope) -> None:
        note("invoke", envelope)
        if envelope.payload == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            await anyio.sleep(work_s)
        except anyio.get_cancelled_exc_class():
            note("unknown", envelope)
            raise
        note("ok", envelope)

    return handle


def config_of(options: Namespace) -> WorkerConfig:
    handle = handler(handling(Recorder(options.log), options.work_ms / 1000))
    return WorkerConfig(
        handlers=dict.fromkeys(options.reactions, handle),
        owner=options.owner or options.log.stem,
        slots=options.slots,
        lease=timedelta(milliseconds=options.lease_ms),
    )


async def run(options: Namespace) -> None:
    config = config_of(options)
    while True:
        try:
            async with open_store(options.url) as store:
                await Dispatcher(store, config).run()
        except Unavailable:
            await anyio.sleep(0.05)


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("log", type=Path)
    parser.add_argument("reactions", nargs="+")
    parser.add_argument("--owner")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--lease-ms", type=int, default=1_000)
    parser.add_argument("--work-ms", type=float, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
