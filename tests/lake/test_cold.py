"""Cold, warm and hot give the same entries, byte for byte, through one cursor."""

import sqlite3
from collections.abc import Sequence
from contextlib import aclosing, closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings, strategies as st

from tape.bus.history import History
from tape.core.errors import BrokerOverflowError, Corrupt
from tape.core.event import Entry, Event, Trace
from tape.core.fork import Segment
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Bounds, Page, RunPage, TermReader
from tape.core.subject import Pattern
from tape.core.term import Term
from tape.lake.compaction import compact, vacuum
from tape.lake.log import DeltaLog
from tape.lake.reader import LakeReader
from tape.store.journal import PAGE_BYTES
from tests.deadlines import DEADLINE_S
from tests.lake.local_lake import fill, opened, publish, read_all

NOW = timedelta(seconds=-1)

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
payloads = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)
ODD: list[object] = [2**53 + 1, -(2**63), -0.0, 1e308, 5e-324, '\u2028\x7f\U0010ffff☃\\"', {"": {"\\": '"'}}, []]


def deep(levels: int) -> object:
    value: object = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


async def hot_warm_and_cold(
    log: DeltaLog, url: str, events: list[Event]
) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """The entries streamed live, read from the journal, and read from the lake after the journal was trimmed."""
    async with opened(url, log) as (store, journal):
        live = journal.stream(from_global_seq=0)
        async with aclosing(live):
            for event in events:
                await journal.append(event, open=True)
            with anyio.fail_after(DEADLINE_S):
                hot = [await anext(live) for _ in events]
        warm = await read_all(journal)
        await fill(store, log, url)
        await store.retention.trim(GlobalSeq(len(events)))
        return hot, warm, await read_all(journal)


@settings(max_examples=5)
@given(payloads=st.lists(payloads, min_size=1, max_size=50))
async def test_p21_cold_warm_and_hot_are_equal_to_the_byte_for_any_payload(
    payloads: list[object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("p21")
    published = [*payloads, *ODD, deep(60)]
    events = [Event(run_id="r", payload=payload) for payload in published]  # type: ignore[arg-type]

    hot, warm, cold = await hot_warm_and_cold(DeltaLog(folder / "lake" / "journal"), f"sqlite:///{folder}/j.db", events)

    assert cold == warm == hot and [list(map(type, entry)) for entry in cold] == [list(map(type, e)) for e in hot]
    assert [repr(entry.payload) for entry in cold] == [repr(event.payload) for event in events]


async def test_p21_everything_but_the_payload_is_equal_too(log: DeltaLog, durable_url: str) -> None:
    trace = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7")
    first = Event(run_id="a.b-c_1", payload=None, type="X.y", subject="/a/b%20c", schema_version=32767, trace=trace)
    second = Event(run_id="bin", payload=b"\0\xff", content_type="image/png", attributes={"client_id": "é"}, cause=1)

    hot, warm, cold = await hot_warm_and_cold(log, durable_url, [first, second])

    assert cold == warm == hot and cold[1].payload == b"\0\xff" and cold[1].depth == 1


@pytest.mark.parametrize("through", [1, 99, 100, 101, 499, 500, 700])
async def test_a_stream_from_the_beginning_is_complete_for_any_floor(log: DeltaLog, url: str, through: int) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 700)
        await fill(store, log, url, 200)
        await store.retention.trim(GlobalSeq(through))
        published += await publish(journal, 10)

        assert await read_all(journal) == published
        assert await read_all(journal, from_global_seq=98) == published[98:]
        assert await read_all(journal, run_id="run1") == [entry for entry in published if entry.run_id == "run1"]
        assert await read_all(journal, run_id="run2", from_seq=40) == [e for e in published if e.run_id == "run2"][39:]
        assert await read_all(journal, subject="/n/3/*") == [e for e in published if e.subject.startswith("/n/3/")]


async def test_a_pattern_finds_in_the_lake_what_it_finds_in_the_journal(log: DeltaLog, url: str) -> None:
    patterns = ["/n/1/**", "/n/**", "/*/2/*", "/**", "/n/3/10", "/nothing/**", "/n/*/699"]
    async with opened(url, log) as (store, journal):
        await publish(journal, 700)
        await fill(store, log, url, 200)
        warm = [await read_all(journal, subject=pattern) for pattern in patterns]

        await store.retention.trim(GlobalSeq(700))

        assert [await read_all(journal, subject=pattern) for pattern in patterns] == warm


async def test_a_fork_reads_through_lake_and_journal_what_it_inherits(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        await publish(journal, 300)
        await journal.fork("run0", 50, run_id="child", mutation={"x": 1})
        await publish(journal, 300)
        await journal.fork("child", 20, run_id="grandchild")
        warm = [await read_all(journal, run_id=run_id) for run_id in ("run0", "child", "grandchild")]
        await fill(store, log, url)

        await store.retention.trim(GlobalSeq(400))

        assert [await read_all(journal, run_id=run_id) for run_id in ("run0", "child", "grandchild")] == warm


async def test_a_live_reader_continues_when_its_position_is_trimmed(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 600)
        await fill(store, log, url)
        stream = journal.stream(from_global_seq=0)
        async with aclosing(stream):
            first = [await anext(stream) for _ in range(10)]
            await store.retention.trim(GlobalSeq(600))
            published += await publish(journal, 5)

            with anyio.fail_after(DEADLINE_S):
                rest = [await anext(stream) for _ in range(595)]

    assert first + rest == published


async def test_without_a_lake_what_is_gone_is_a_gap(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        await publish(journal, 100)
        await store.retention.trim(GlobalSeq(40))

        with pytest.raises(BrokerOverflowError, match="begins at 41"):
            await read_all(journal)
        with pytest.raises(BrokerOverflowError, match="begins at 15"):
            await read_all(journal, run_id="run0")


async def test_a_lake_that_ends_too_soon_is_read_to_its_end_and_then_there_is_a_gap(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 50)
        await fill(store, log, url)
        await publish(journal, 50)
        await store.retention.trim(GlobalSeq(80))
        seen: list[Entry] = []

        with pytest.raises(BrokerOverflowError, match="51 to 80 are gone"):
            async for entry in journal.stream():
                seen.append(entry)

    assert seen == published


async def test_the_lake_of_another_journal_has_nothing_for_this_one(log: DeltaLog, url: str, tmp_path: Path) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 100)
        await fill(store, log, url)

    async with opened(f"sqlite:///{tmp_path}/other.db", log) as (store, journal):
        await publish(journal, 200)
        await store.retention.trim(GlobalSeq(50))

        with pytest.raises(BrokerOverflowError, match="1 to 50 are gone"):
            await read_all(journal)


async def test_p21_a_lake_with_entries_that_the_journal_has_lost_has_nothing_for_it(
    log: DeltaLog, url: str, tmp_path: Path
) -> None:
    older = await with_lost_entries(log, url, tmp_path)

    async with opened(older, log) as (_, journal):
        with pytest.raises(BrokerOverflowError, match="1 to 10 are gone"):
            await read_all(journal)


async def test_p21_a_lake_is_compared_again_when_an_epoch_begins(log: DeltaLog, url: str, tmp_path: Path) -> None:
    older = await with_lost_entries(log, url, tmp_path)

    async with opened(url) as (newest, _), opened(older) as (promoted, _):
        primary = Primary(newest.journal)
        history = History(primary, LakeReader(log))
        assert len((await history.read(GlobalSeq(0))).entries) == 100
        primary.journal = promoted.journal

        page = await history.read(GlobalSeq(0))

    assert (page.entries, page.bounds, page.epoch) == ((), (11, 120), promoted.epoch)


async def with_lost_entries(log: DeltaLog, url: str, folder: Path) -> str:
    """A journal that lost the entries 21 to 100, which the lake has, and appended others; 1 to 10 are trimmed."""
    older = folder / "older.db"
    async with opened(url) as (store, journal):
        await publish(journal, 20)
        await fill(store, log, url)
        await store.retention.trim(GlobalSeq(10))
        with closing(sqlite3.connect(folder / "journal.db")) as now, closing(sqlite3.connect(older)) as copy:
            now.backup(copy)
        await publish(journal, 80)
        await fill(store, log, url)
    compact(log)  # into one file, with lost entries and others
    async with opened(f"sqlite:///{older}") as (store, journal):
        await store.new_epoch()
        await publish(journal, 100)
    return f"sqlite:///{older}"


class Primary:
    """The journal of the server that can be written to, which a promotion replaces."""

    def __init__(self, journal: TermReader) -> None:
        self.journal = journal

    async def bounds(self) -> Bounds:
        return await self.journal.bounds()

    async def terms(self) -> Sequence[Term]:
        return await self.journal.terms()

    async def read(self, after: GlobalSeq, *, pattern: Pattern | None = None) -> Page:
        return await self.journal.read(after, pattern=pattern)

    async def read_run(self, run_id: RunId, after: Seq, segments: Sequence[Segment] = ()) -> RunPage:
        return await self.journal.read_run(run_id, after, segments)


async def test_an_entry_that_is_not_what_was_written_is_refused_in_its_place(log: DeltaLog, url: str) -> None:
    async with opened(url, log) as (store, journal):
        published = await publish(journal, 100)
        async with store.transaction() as tx:
            await tx.fetch("UPDATE tape_journal SET payload_json = '0' WHERE global_seq = 60", {})
        await fill(store, log, url)
    reader = LakeReader(log)

    assert list((await reader.read(GlobalSeq(50))).entries) == published[50:59]
    with pytest.raises(Corrupt, match="entry 60"):
        await reader.read(GlobalSeq(59))


async def test_a_reader_whose_files_were_compacted_and_vacuumed_reads_on(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        published = await publish(journal, 700)
        await fill(store, log, url, 100)
    reader = LakeReader(log)
    before = (await reader.read(GlobalSeq(0))).entries

    compact(log)
    vacuum(log, NOW)

    after = (await reader.read(GlobalSeq(len(before)))).entries
    assert [*before, *after] == published[: len(before) + len(after)] and after
    page = await reader.read_run(RunId("run1"), Seq(0))
    assert list(page.entries) == [entry for entry in published if entry.run_id == "run1"]


async def test_p17_a_lost_file_of_the_lake_is_an_error_and_not_an_empty_page(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 400)
        await fill(store, log, url, 200)
    lost = log.snapshot().files[1]
    (log.table / lost.path).unlink()
    reader = LakeReader(log)

    assert (await reader.read(GlobalSeq(0))).scanned_to < lost.first
    with pytest.raises(Corrupt, match="the lake has lost"):
        await reader.read(GlobalSeq(lost.first - 1))
    with pytest.raises(Corrupt, match="the lake has lost"):
        await reader.read_run(RunId("run1"), Seq(0))


async def test_a_pattern_gives_nothing_of_the_lake_that_only_begins_like_it(log: DeltaLog, url: str) -> None:
    subjects = ["/a/b/x", "/a/b-c/x", "/a/b", "/a/b.c", "/a/b0"]
    async with opened(url, log) as (store, journal):
        await journal.append([Event(run_id="r", payload=None, subject=subject) for subject in subjects], open=True)
        await fill(store, log, url)
        await store.retention.trim(GlobalSeq(len(subjects)))

        found = await read_all(journal, subject="/a/b/**")

    assert [entry.subject for entry in found] == ["/a/b/x", "/a/b"]


async def test_a_page_of_a_pattern_has_the_last_position_scanned(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 700)
        await fill(store, log, url, 200)
    page = await LakeReader(log).read(GlobalSeq(10), pattern=Pattern.parse("/nothing/**"))

    assert page.entries == () and page.scanned_to == 700


async def test_p26_a_page_of_the_lake_is_bounded_in_bytes_and_the_next_one_goes_on(log: DeltaLog, url: str) -> None:
    async with opened(url) as (store, journal):
        for _ in range(12):
            await journal.append(Event(run_id="r", payload="x" * 900_000), open=True)
        await fill(store, log, url)
    reader, pages = LakeReader(log), [await LakeReader(log).read(GlobalSeq(0))]

    while pages[-1].scanned_to < 12:
        pages.append(await reader.read(pages[-1].scanned_to))

    assert [entry.global_seq for page in pages for entry in page.entries] == list(range(1, 13))
    assert max(sum(entry.weight for entry in page.entries) for page in pages) <= PAGE_BYTES
