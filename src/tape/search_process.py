"""A search through history in a process of its own, told as lines of JSON to whoever started it, and ended with it."""

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
    """What is found, as it becomes known, from what is to be searched to the end."""
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
            for some in find_matches(spark, url, lake, plan):
                made = portal.call(backend.store.tasks.make, some.matches) if some.matches else 0
                findings = replace(
                    findings,
                    searched=some.searched,
                    matches=findings.matches + len(some.matches),
                    older=findings.older + sum(hit.older for hit in some.matches),
                    made=findings.made + made,
                )
                yield findings


def main() -> None:
    told = _own_output()
    order = SearchOrder(**json.loads(sys.stdin.readline()))
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        for findings in search(order):
            _tell(told, {"findings": asdict(findings)})
    except Exception as error:  # noqa: BLE001 - Spark's own errors are many, and its log has all of it
        is_ours = isinstance(error, TapeError) and not isinstance(error, (Corrupt, Unavailable))
        _tell(told, {"refused": str(error)} if is_ours else {"broken": f"{type(error).__name__}: {error}"[:2_000]})
    else:
        _tell(told, {"done": True})


def _own_output() -> TextIO:
    """Where only we write; whatever a library prints goes where errors go."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return told


def _tell(told: TextIO, facts: dict[str, object]) -> None:
    told.write(json.dumps(facts) + "\n")
    told.flush()


def _end_with_parent() -> None:
    """Nobody else would end a search whose server was killed."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
