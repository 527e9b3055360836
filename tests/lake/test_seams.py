"""An SSE subscriber from the beginning reads lake, journal and live entries as one stream."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from tape.core.ids import GlobalSeq
from tape.lake.archive import archive
from tape.lake.log import DeltaLog
from tests.lake.local_lake import fill, opened, publish
from tests.lake.test_archive import LATER, ignore
from tests.server.server import TapeServer

COLD, WARM, LIVE = 600, 100, 20


@pytest.fixture
def server(tmp_path: Path, url: str, log: DeltaLog) -> Iterator[TapeServer]:
    """A server over a journal of which most is in the lake, archived while it runs."""
    with TapeServer(tmp_path, url, "--lake", str(log.table.parent)) as server:
        anyio.run(prepare, url, log)
        yield server


async def prepare(url: str, log: DeltaLog) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, COLD)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        await publish(journal, WARM)
        assert await store.journal.bounds() == (GlobalSeq(COLD + 1), GlobalSeq(COLD + WARM))


async def publish_live(url: str) -> None:
    async with opened(url) as (_, journal):
        await publish(journal, LIVE)


def frames(server: TapeServer, path: str, last: int) -> list[str]:
    """The frames of a stream up to an id; publishes more at the end of the replay."""
    found: list[str] = []
    with server.client() as client, client.stream("GET", path) as response:
        for line in response.iter_lines():
            found += [line] if line.startswith(("id:", "event:")) else []
            if line.startswith("event: replay_complete"):
                anyio.run(publish_live, server.store)
            if line == f"id: {last}":
                return found
    pytest.fail(f"the stream ended before {last}")


@pytest.mark.parametrize(
    ("path", "last"),
    [("/events?subject=/**&from_global_seq=0", COLD + WARM + LIVE), ("/events?run_id=run0&from_seq=1", 241)],
)
def test_a_subscriber_from_the_beginning_gets_every_id_once_and_no_resync(
    server: TapeServer, path: str, last: int
) -> None:
    found = frames(server, path, last)

    ids = [int(line.removeprefix("id: ")) for line in found if line.startswith("id: ")]
    assert ids == list(range(1, last + 1))
    assert "event: state_resync_required" not in found and found.count("event: replay_complete") == 1


def test_a_subscriber_in_the_lake_resumes_at_its_position(server: TapeServer) -> None:
    path = "/events?subject=/**"

    with server.client() as client, client.stream("GET", path, headers={"Last-Event-ID": "300"}) as response:
        ids = [line for _, line in zip(range(1), only_ids(response), strict=False)]

    assert ids == ["id: 301"]


def only_ids(response: httpx.Response) -> Iterator[str]:
    return (line for line in response.iter_lines() if line.startswith("id: "))
