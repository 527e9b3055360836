"""A search through history in a process of its own: reads its order from stdin, writes findings as lines of JSON."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from threading import Thread
from typing import TextIO

from tape.core.errors import Corrupt, TapeError, Unavailable
from tape.core.search import Findings, SearchKind, SearchOrder


def search(order: SearchOrder) -> Iterator[Findings]:
    """Yields the findings so far after each step; the first has only the range that is searched."""
    from anyio.from_thread import start_blocking_portal

    from tape.compose import open_backend
    from tape.lake.search.backfill import find_matches, plan_backfill
    from tape.lake.search.backfill_dry_run import dry_run_backfill
    from tape.lake.session import open_session
    from tape.lake.store_option import check_durable

    url, lake = check_durable(order.store), Path(order.lake)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_backend(url, lake=lake)) as backend:
        plan = portal.call(plan_backfill, backend.store, backend.journal, order.reaction_id, order.after, order.through)
        findings = Findings(after=plan.after, through=plan.through)
        yield findings
        with open_session(order.master, Path(order.folder)) as spark:
            if order.kind == SearchKind.DRY_RUN:
                yield from dry_run_backfill(spark, url, lake, plan)
                return
            for batch in find_matches(spark, url, lake, plan):
                made = portal.call(backend.store.tasks.make, batch.matches) if batch.matches else 0
                findings = replace(
                    findings,
                    searched=batch.searched,
                    matches=findings.matches + len(batch.matches),
                    older=findings.older + sum(match.older for match in batch.matches),
                    made=findings.made + made,
                )
                yield findings


def main() -> None:
    output = _own_stdout()
    order = SearchOrder(**json.loads(sys.stdin.readline()))
    Thread(target=_exit_with_parent, daemon=True).start()
    try:
        for findings in search(order):
            _write(output, {"findings": asdict(findings)})
    except Exception as error:  # noqa: BLE001 - Spark's own errors are many, and its log has all of it
        is_ours = isinstance(error, TapeError) and not isinstance(error, (Corrupt, Unavailable))
        _write(output, {"refused": str(error)} if is_ours else {"broken": f"{type(error).__name__}: {error}"[:2_000]})
    else:
        _write(output, {"done": True})


def _own_stdout() -> TextIO:
    """A copy of stdout for the findings; what libraries print goes to stderr from now on."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def _write(output: TextIO, message: dict[str, object]) -> None:
    output.write(json.dumps(message) + "\n")
    output.flush()


def _exit_with_parent() -> None:
    """Exits when stdin closes: a server that was killed cannot end its search otherwise."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
