"""Handlers in child processes, which are killed when their attempt is cancelled."""

import importlib
import inspect
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import anyio

from tape.core.causation import caused_by, current_cause
from tape.core.errors import UsageError
from tape.core.task import Died, Failed, Outcome, Released
from tape.work.answers import Dead, Release, Retry, outcome_of
from tape.work.child_process import open_child
from tape.work.envelope import Envelope

if TYPE_CHECKING:
    from tape.work.handler import Handler

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
PROGRAM: Final = "import sys; sys.path[:] = sys.argv[1:]; from tape.work.processes import main; main()"


async def call_in_process(handler: "Handler", envelopes: Sequence[Envelope], limiter: anyio.CapacityLimiter) -> None:
    """Imports and calls the function in a new interpreter; a cancellation kills its process group."""
    request = {
        "module": handler.function.__module__,
        "name": handler.function.__qualname__,
        "batch": handler.batch,
        "envelopes": [dict(each) for each in envelopes],
        "cause": current_cause() or 0,
    }
    command = [sys.executable, "-c", PROGRAM, *sys.path]
    async with limiter, open_child(command, stderr=STDERR) as child:
        await child.write(json.dumps(request).encode() + b"\n")
        answer = await child.read_line(-1)
        status = await child.wait()
    outcome = json.loads(answer) if status == 0 and answer else None
    if outcome is None:
        raise ChildProcessError(f"its process ended with status {status} and no answer")
    if outcome["is_released"]:
        raise Release("its process gave it back")
    if outcome["is_dead"]:
        raise Dead(outcome["error"])
    if outcome["error"]:
        raise Retry(outcome["error"], after=outcome["after_s"])


def main() -> None:
    """The program of the child process. Its standard output is the answer; the function prints to standard error.

    Its standard input is one line, and stays open for as long as the worker lives.
    """
    requests, answers = os.dup(STDIN), os.dup(STDOUT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), STDIN)
    os.dup2(STDERR, STDOUT)
    request = json.loads(os.fdopen(requests, "rb", closefd=False).readline())
    threading.Thread(target=_exit_with_worker, args=(requests,), name="tape worker watch", daemon=True).start()
    outcome = call(request)
    with os.fdopen(answers, "wb") as answer:
        answer.write(json.dumps(_outcome_fields(outcome)).encode())


def _exit_with_worker(requests: int) -> None:
    """Kills this process group when the worker has ended, since nothing else would end it at its deadline."""
    while os.read(requests, 1):
        pass
    with suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def call(request: Mapping[str, Any]) -> Outcome:
    """Imports a function by its name, calls it, and returns the outcome for its task."""
    from tape.work.handler import handler

    try:
        function = _imported(request["module"], request["name"])
        made = handler(function, request["batch"])
        with caused_by(request["cause"]):
            arguments = made.arguments([Envelope(**each) for each in request["envelopes"]]) if made.takes else ()
            answer = function(*arguments)
            return outcome_of(anyio.run(_awaited, answer) if inspect.isawaitable(answer) else answer)
    except Exception as error:  # noqa: BLE001 - a handler may raise anything, and that is its answer
        return outcome_of(error)


def check_importable(function: Callable[..., Any]) -> None:
    """Raises a UsageError if a child process could not import the function by its name."""
    if not inspect.isfunction(function) or "<" in function.__qualname__ or function.__module__ == "__main__":
        raise _not_importable(function)


def check_imported(function: Callable[..., Any]) -> None:
    """Raises a UsageError if the name of the function now refers to something else."""
    try:
        found = _imported(function.__module__, function.__qualname__)
    except (ImportError, AttributeError):
        found = None
    if found is not function:
        raise _not_importable(function)


def _imported(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _not_importable(function: Callable[..., Any]) -> UsageError:
    name = getattr(function, "__qualname__", None) or repr(function)
    return UsageError(f"a handler in a process is a function that can be imported by its name, not {name!r}")


async def _awaited(answer: Any) -> object:
    return await answer


def _outcome_fields(outcome: Outcome) -> dict[str, object]:
    after = outcome.after if isinstance(outcome, Failed) else None
    return {
        "error": outcome.error if isinstance(outcome, Failed | Died) else "",
        "is_dead": isinstance(outcome, Died),
        "is_released": isinstance(outcome, Released),
        "after_s": None if after is None else after / timedelta(seconds=1),
    }
