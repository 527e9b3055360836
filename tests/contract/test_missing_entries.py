"""A missing entry above the floor: every reader reports it, whatever it filters by."""

from collections.abc import AsyncIterable

import anyio
import pytest
import redis

from tape.bus.journal import Journal
from tape.core.errors import Corrupt
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.core.subject import Pattern
from tape.matcher.matcher import Matcher
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, make_event
from tests.contract.reactions import catch_up, publish, reaction, sources
from tests.deadlines import DEADLINE_S

PATTERNS = [None, "/**", "/*/b", "/a/**", "/a/*", "/a/b", "/other/**", "/other/one"]
ENTRIES, LOST = 9, 5


async def lose(backend: Backend, store: Store, run_id: str = "r1", place: int = LOST, seq: int = LOST) -> None:
    """Removes an entry behind the store's back."""
    if backend.name == "redis":
        with redis.Redis.from_url(backend.url) as client:
            assert client.xdel(f"{{tape}}:entries:{run_id}", f"{seq}-{place}") == 1
        return
    async with store.transaction() as tx:
        await tx.fetch("DELETE FROM tape_journal WHERE global_seq = :place", {"place": place})


async def taken(entries: AsyncIterable[Entry]) -> list[int]:
    """The positions of the entries before `Corrupt` was raised."""
    places: list[int] = []
    with anyio.fail_after(DEADLINE_S), pytest.raises(Corrupt, match=f"entry {LOST}: it is missing"):
        async for entry in entries:
            places.append(entry.global_seq)
    return places


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_a_page_ends_before_a_missing_entry_and_the_next_one_says_so(
    backend: Backend, store: Store, pattern: str | None
) -> None:
    await publish(store, ENTRIES)
    await lose(backend, store)
    wanted = None if pattern is None else Pattern(pattern)

    page = await store.journal.read(GlobalSeq(0), pattern=wanted)

    expected = [] if pattern is not None and "other" in pattern else [1, 2, 3, 4]
    assert page.scanned_to == LOST - 1 and [entry.global_seq for entry in page.entries] == expected
    with pytest.raises(Corrupt, match=f"entry {LOST}: it is missing"):
        await store.journal.read(GlobalSeq(LOST - 1), pattern=wanted)


@pytest.mark.parametrize("pattern", PATTERNS)
async def test_what_follows_a_missing_entry_can_be_read(backend: Backend, store: Store, pattern: str | None) -> None:
    await publish(store, ENTRIES)
    await lose(backend, store)

    page = await store.journal.read(GlobalSeq(LOST), pattern=None if pattern is None else Pattern(pattern))

    assert page.scanned_to == ENTRIES


@pytest.mark.parametrize("subject", PATTERNS)
@pytest.mark.parametrize("where", [None, "payload.n > 2"])
async def test_a_stream_says_that_an_entry_is_missing(
    backend: Backend, store: Store, journal: Journal, subject: str | None, where: str | None
) -> None:
    await publish(store, ENTRIES)
    await lose(backend, store)

    places = await taken(journal.stream(subject=subject, where=where))

    first = 3 if where else 1
    assert places == ([] if subject is not None and "other" in subject else list(range(first, LOST)))


@pytest.mark.parametrize("subject", ["/a/b", "/a/**"])
async def test_a_missing_entry_that_a_stream_does_not_want_is_missed_too(
    backend: Backend, store: Store, journal: Journal, subject: str
) -> None:
    await publish(store, 4)
    await append(store, make_event("r2", subject="/c"))
    await publish(store, 2)
    await lose(backend, store, "r2", LOST, 1)

    assert await taken(journal.stream(subject=subject)) == [1, 2, 3, 4]


async def test_what_retention_has_removed_is_not_missing(store: Store) -> None:
    await publish(store, ENTRIES)
    await store.retention.trim(GlobalSeq(LOST))

    pages = [await store.journal.read(GlobalSeq(0), pattern=Pattern(text)) for text in ("/**", "/a/**", "/a/b", "/c")]

    assert {(page.bounds.floor, page.scanned_to) for page in pages} == {(LOST + 1, ENTRIES)}


async def test_what_is_left_below_the_floor_by_trimming_a_run_is_not_counted(store: Store) -> None:
    for _ in range(3):
        await publish(store, 1, "/a/b", "r1")
        await publish(store, 1, "/a/b", "r2")
    await store.retention.trim_run(make_event("r1").run_id, 1)
    floor = (await store.journal.bounds()).floor

    pages = [await store.journal.read(GlobalSeq(0), pattern=Pattern(text)) for text in ("/**", "/a/**", "/a/b", "/c")]

    assert floor == 4 and {(page.bounds.floor, page.scanned_to) for page in pages} == {(floor, 6)}


@needs_ledgers
@pytest.mark.parametrize("pattern", ["/a/**", "/other/**"])
async def test_the_matcher_does_not_pass_over_a_missing_entry(backend: Backend, store: Store, pattern: str) -> None:
    await store.reactions.register(reaction(pattern=pattern))
    await publish(store, ENTRIES)
    await lose(backend, store)
    matcher = Matcher(store)

    with pytest.raises(Corrupt, match=f"entry {LOST}: it is missing"):
        await catch_up(matcher)

    assert await sources(store) == ([2, 3, 4] if pattern == "/a/**" else [])


@needs_ledgers
async def test_a_matcher_that_looks_for_the_first_reaction_does_not_pass_over_a_missing_entry(
    backend: Backend, store: Store
) -> None:
    await publish(store, ENTRIES)
    await lose(backend, store)

    with pytest.raises(Corrupt, match=f"entry {LOST}: it is missing"):
        await catch_up(Matcher(store))
