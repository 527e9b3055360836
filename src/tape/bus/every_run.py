"""All runs of a list, page by page."""

from tape.core.ports import RunDirectory
from tape.core.run import RunRecord
from tape.core.run_query import MAX_PAGE, RunPosition, RunQuery


async def every_run(runs: RunDirectory, query: RunQuery) -> list[RunRecord]:
    """Every run that matches, each once; a run that changes meanwhile is the one found last."""
    found: dict[str, RunRecord] = {}
    after: RunPosition | None = None
    while page := await runs.listed(query, MAX_PAGE, after):
        found.update((record.run_id, record) for record in page)
        after = query.position(page[-1])
        if len(page) < MAX_PAGE:
            break
    return list(found.values())
