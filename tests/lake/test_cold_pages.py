"""Pages of a run that a bounded store deletes while it is read."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.caller import PLAIN
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import RunMeta, RunRecord
from tape.lake.cold.runs import ColdRuns as ColdFiles
from tape.operations.journal_runs import ListEvents
from tape.runs.cold_runs import ColdRuns
from tape.runs.run_events import RunEvents

RUN = RunId("r")


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


async def test_a_run_that_is_reaped_while_a_page_is_read_is_read_from_its_file(
    store: Store, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold = ColdRuns(ColdFiles(tmp_path))
    await journal.append([Event(run_id=RUN, payload=number) for number in range(3)], open=True)
    await journal.close_run(RUN)
    await cold.keep(RUN, lambda seq: journal.stream(run_id=RUN, from_seq=seq, follow=False), RunMeta())
    _reap_when_found(monkeypatch, store, journal)

    page = await RunEvents(journal, store.runs, cold).list(ListEvents(run_id=RUN), PLAIN)

    assert [entry.payload for entry in page.entries] == [0, 1, 2]
    assert (page.next, page.head, page.closed) == (3, 3, True)


def _reap_when_found(monkeypatch: pytest.MonkeyPatch, store: Store, journal: Journal) -> None:
    """The run is reaped as soon as somebody has found it in the store."""
    find = store.runs.find

    async def find_and_reap(run_id: RunId) -> RunRecord | None:
        record = await find(run_id)
        if record is not None and not record.is_reaped:
            await journal.reap(run_id)
        return record

    monkeypatch.setattr(store.runs, "find", find_and_reap)
