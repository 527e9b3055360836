"""A dry run matches what the live matcher matches, in the lake and in the journal."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.cli.reaction.dry_run import sparkline
from tape.core.errors import BrokerOverflowError, Conflict, InvalidCursor, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.core.sequence import AppendRequest
from tape.core.subject import Pattern
from tape.lake import dry_run
from tape.lake.archive import archive
from tape.lake.log import DeltaLog
from tape.lake.search.dry_run import HistoryQuery, summarize_dry_run
from tape.lake.search.position_range import entries, position_range
from tests.lake.expressions import RandomPredicates
from tests.lake.journals import fill as append, read
from tests.lake.local_lake import fill, opened, publish
from tests.lake.test_archive import LATER, ignore

PATTERN = "/tape/event/*/r-1"
PREDICATES = {
    "native": "type == 'tick' && payload.i > 0",
    "in doubt": "double(payload.s) > 1.0 || payload.x == payload.y",
    "always an error": "payload.i / 0 == 1",
}
EVALUATED = "payload.l.exists_one(e, e == 1)"
COLD, WARM = 200, 100


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of 300 entries of which the lake holds the first 200, in several files."""
    folder = tmp_path_factory.mktemp("dry-run")
    events = [_event(entry) for entry in RandomPredicates(seed=7).entries(COLD + WARM)]
    anyio.run(_spread, folder, events)
    return folder


def _event(entry: Entry) -> Event:
    """The same event again; a payload that is not JSON goes to a run of its own."""
    fields = {"type": entry.type, "payload": entry.payload, "subject": entry.subject}
    if entry.payload_json is None:
        return Event(run_id="raw", content_type="application/octet-stream", **fields)  # type: ignore[arg-type]
    return Event(run_id=entry.run_id, **fields)  # type: ignore[arg-type]


async def _spread(folder: Path, events: list[Event]) -> None:
    url, log = _url(folder), DeltaLog(folder / "lake" / "journal")
    async with opened(url) as (store, journal):
        await journal.append(events[:COLD], open=True)
        await fill(store, log, url, 60)
        await journal.append(events[COLD:], open=True)


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/journal.db"


def judged(found: list[Entry], where: str) -> list[tuple[Entry, Verdict]]:
    """The live matcher's verdicts on the entries under the pattern."""
    pattern, predicate = Pattern(PATTERN), Predicate(where)
    under = [entry for entry in found if pattern.matches(entry.subject)]
    return [(entry, predicate.evaluate(bind(entry))) for entry in under]


@pytest.mark.parametrize("where", PREDICATES.values(), ids=PREDICATES)
def test_a_dry_run_equals_the_live_matcher(spark: SparkSession, place: Path, where: str) -> None:
    live = judged(read(_url(place)), where)

    found = summarize_dry_run(spark, _url(place), place / "lake", HistoryQuery(pattern=PATTERN, where=where))

    matched = [entry for entry, verdict in live if verdict]
    ends = [(entry.global_seq, entry.ts_ms) for entry in (matched[0], matched[-1])] if matched else [None, None]
    assert (found.matches, [found.first, found.last]) == (len(matched), ends)
    assert sum(day.matches for day in found.days) == len(matched)
    assert list(found.samples) == matched[: -len(found.samples) - 1 : -1] and len(found.samples) == min(5, len(matched))
    assert {cause.error: cause.entries for cause in found.errors} == Counter(v.error for _, v in live if v.error)


@pytest.mark.parametrize(("after", "through"), [(0, 201), (200, 300), (60, 120), (50, 50)])
def test_every_position_is_read_once_from_lake_or_journal(
    spark: SparkSession, place: Path, after: int, through: int
) -> None:
    log = DeltaLog(place / "lake" / "journal")

    found = entries(spark, _url(place), log, position_range(_url(place), log, after, through))

    assert sorted(row["global_seq"] for row in found.select("global_seq").collect()) == [*range(after + 1, through + 1)]


def test_what_was_archived_is_read_in_the_lake(spark: SparkSession, durable_url: str, log: DeltaLog) -> None:
    anyio.run(_archived, durable_url, log)

    found = summarize_dry_run(
        spark, durable_url, log.table.parent, HistoryQuery(pattern="/n/3/*", where="payload.n >= 0")
    )

    assert found.matches == len([n for n in range(70) if n % 7 == 3]) + len([n for n in range(14) if n % 7 == 3])
    assert found.cost.entries == 84


async def _archived(url: str, log: DeltaLog) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 70)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        await publish(journal, 14)


def test_without_a_lake_the_journal_is_searched(spark: SparkSession, url: str, log: DeltaLog) -> None:
    append(url, [Event(run_id="r", payload={"n": n}) for n in range(10)])

    found = summarize_dry_run(spark, url, log.table.parent, HistoryQuery(pattern="/**", where="payload.n > 6"))

    assert (found.matches, found.cost.entries, found.cost.native) == (3, 10, 1.0)


def test_an_empty_journal_has_no_matches(spark: SparkSession, url: str, log: DeltaLog) -> None:
    append(url, [])

    found = summarize_dry_run(spark, url, log.table.parent, HistoryQuery(pattern="/**", where="payload.n > 6"))

    assert (found.matches, found.first, found.last, found.days, found.samples, found.errors) == (
        0,
        None,
        None,
        (),
        (),
        (),
    )


def test_the_value_before_is_the_one_the_matcher_sees(spark: SparkSession, url: str, log: DeltaLog) -> None:
    anyio.run(_change_values, url)
    where = "prev_value_json == '\"ä\\\\n\"'"

    found = dry_run(spark, url, log.table.parent, "/**", where).collect()

    live = [entry for entry in read(url) if Predicate(where).evaluate(bind(entry))]
    assert [row["global_seq"] for row in found] == [entry.global_seq for entry in live] == [2]
    assert found[0]["prev_value_json"] == '"ä\\n"'


async def _change_values(url: str) -> None:
    """Two entries as the ledger of values writes them, and an event that only looks like one."""
    before = '"ä\\n"'
    changes = [Event(run_id="r", kind="value", payload={"prev_value_json": each}) for each in (None, before)]
    looks_like = Event(run_id="r", payload={"prev_value_json": before})
    async with opened(url) as (store, _), store.transaction() as transaction:
        transaction.append(AppendRequest(events=(*changes, looks_like), opens=True))


def test_since_leaves_out_what_is_older(spark: SparkSession, place: Path) -> None:
    everything = read(_url(place))
    since = datetime.fromtimestamp(everything[250].ts_ms / 1000, UTC)
    later = [entry for entry in everything if entry.ts_ms >= everything[250].ts_ms]

    found = summarize_dry_run(spark, _url(place), place / "lake", HistoryQuery(pattern="/**", since=since))
    none = summarize_dry_run(
        spark, _url(place), place / "lake", HistoryQuery(pattern="/**", since=since + timedelta(days=1))
    )

    assert (found.matches, found.cost.entries, none.matches) == (len(later), len(later), 0)


@pytest.mark.parametrize(
    ("after", "through", "error"), [(301, None, InvalidCursor), (0, 301, InvalidCursor), (10, 5, UsageError)]
)
def test_a_range_that_does_not_exist_is_refused(
    place: Path, after: int, through: int | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        position_range(_url(place), DeltaLog(place / "lake" / "journal"), after, through)


def test_another_journals_lake_is_refused(place: Path, url: str) -> None:
    append(url, [Event(run_id="other", payload=n) for n in range(COLD + WARM)])

    with pytest.raises(Conflict, match="another journal's lake"):
        position_range(url, DeltaLog(place / "lake" / "journal"))


def test_history_in_neither_lake_nor_journal_is_a_gap(url: str, log: DeltaLog) -> None:
    anyio.run(_forget, url)

    with pytest.raises(BrokerOverflowError):
        position_range(url, log)


async def _forget(url: str) -> None:
    async with opened(url) as (store, journal):
        await publish(journal, 10)
        await store.retention.trim(GlobalSeq(4))


def test_the_command_prints_json(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_DATA", str(place))
    where, picture = EVALUATED, place / "matches.svg"
    asked = ["--subject", PATTERN, "--where", where, "--explain", "--plot", str(picture), "--json"]
    command = ["reaction", "dry-run", "--store", _url(place), "--lake", str(place / "lake"), *asked]

    assert run(command) == 0

    found = json.loads(capsys.readouterr().out)
    live = judged(read(_url(place)), where)
    assert found["matches"] == sum(bool(verdict) for _, verdict in live)
    assert sum(cause["entries"] for cause in found["errors"]) == sum(verdict.error is not None for _, verdict in live)
    assert [part["route"] for part in found["explain"]] == ["udf"]
    assert found["cost"]["entries"] == COLD + WARM and 0 < found["cost"]["asked"] <= COLD + WARM
    assert picture.read_text().startswith("<svg") and "var(--" in picture.read_text()


def test_the_command_prints_text(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_DATA", str(place))
    span = ["--from", "10", "--to", "290"]
    command = ["reaction", "dry-run", "--store", _url(place), "--lake", str(place / "lake")]

    assert run([*command, *span, "--subject", PATTERN, "--where", PREDICATES["always an error"]]) == 0

    events = capsys.readouterr().out
    assert "0 matches" in events and "280 entries" in events and "divide by zero" in events


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--since", "7d", "--from", "1"], "--since"),
        (["--where", "seq > 'a'"], "no matching overload"),
        (["--plot", "matches.txt"], ".png or .svg"),
    ],
)
def test_an_invalid_dry_run_is_refused_before_spark_starts(
    place: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reaction", "dry-run", "--store", _url(place), "--subject", "/**", *arguments]

    assert run(command) == 2 and reason in capsys.readouterr().err


def test_a_sparkline_is_as_high_as_the_days_are_full() -> None:
    assert sparkline([1, 4, 0, 8]) == "▁▄ █"
    assert sparkline([5]) == "█" and sparkline([]) == ""


def test_a_long_sparkline_adds_days_up() -> None:
    assert sparkline([1] * 100 + [0] * 100, cells=4) == "██  "
