"""A dry run: what the live matcher would have said of the same entries, wherever they are by now."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

from tape.cli.main import run
from tape.cli.sparkline import sparkline
from tape.core.errors import BrokerOverflowError, Conflict, InvalidCursor, UsageError
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.core.sequence import Request
from tape.core.subject import Pattern
from tape.lake import dry_run
from tape.lake.archive import archive
from tape.lake.log import DeltaLog
from tape.lake.search.dry_run import HistoryQuery, summarize_dry_run
from tape.lake.search.position_range import entries, position_range
from tests.lake.expressions import Maker
from tests.lake.journals import fill as append, read
from tests.lake.plain import fill, opened, say
from tests.lake.test_archive import LATER, ignore

PATTERN = "/tape/event/*/r-1"
PREDICATES = {
    "blank": "",
    "native": "type == 'tick' && payload.i > 0",
    "in doubt": "double(payload.s) > 1.0 || payload.x == payload.y",
    "evaluator": "payload.l.exists_one(e, e == 1)",
    "always an error": "payload.i / 0 == 1",
}
COLD, WARM = 200, 100


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of 300 entries of which the lake holds the first 200, in several files."""
    folder = tmp_path_factory.mktemp("dry-run")
    said = [_event(entry) for entry in Maker(seed=7).entries(COLD + WARM)]
    anyio.run(_spread, folder, said)
    return folder


def _event(entry: Entry) -> Event:
    """The same again; what is not JSON is said in a run of its own."""
    said = {"type": entry.type, "payload": entry.payload, "subject": entry.subject}
    if entry.payload_json is None:
        return Event(run_id="raw", content_type="application/octet-stream", **said)  # type: ignore[arg-type]
    return Event(run_id=entry.run_id, **said)  # type: ignore[arg-type]


async def _spread(folder: Path, said: list[Event]) -> None:
    url, log = _url(folder), DeltaLog(folder / "lake" / "journal")
    async with opened(url) as (store, journal):
        await journal.append(said[:COLD], open=True)
        await fill(store, log, url, 60)
        await journal.append(said[COLD:], open=True)


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/journal.db"


def judged(found: list[Entry], where: str) -> list[tuple[Entry, Verdict]]:
    """What the live matcher says of the entries under the pattern."""
    pattern, predicate = Pattern(PATTERN), Predicate(where)
    under = [entry for entry in found if pattern.matches(entry.subject)]
    return [(entry, predicate.evaluate(bind(entry))) for entry in under]


@pytest.mark.parametrize("where", PREDICATES.values(), ids=PREDICATES)
def test_a_dry_run_is_what_the_live_matcher_says(spark: SparkSession, place: Path, where: str) -> None:
    live = judged(read(_url(place)), where)

    told = summarize_dry_run(spark, _url(place), place / "lake", HistoryQuery(pattern=PATTERN, where=where))

    matched = [entry for entry, verdict in live if verdict]
    ends = [(entry.global_seq, entry.ts_ms) for entry in (matched[0], matched[-1])] if matched else [None, None]
    assert (told.matches, [told.first, told.last]) == (len(matched), ends)
    assert sum(day.matches for day in told.days) == len(matched)
    assert list(told.samples) == matched[: -len(told.samples) - 1 : -1] and len(told.samples) == min(5, len(matched))
    assert {cause.error: cause.entries for cause in told.errors} == Counter(v.error for _, v in live if v.error)


@pytest.mark.parametrize("where", PREDICATES.values(), ids=PREDICATES)
def test_the_frame_has_the_matches_and_each_once(spark: SparkSession, place: Path, where: str) -> None:
    wanted = [entry.global_seq for entry, verdict in judged(read(_url(place)), where) if verdict]

    found = dry_run(spark, _url(place), place / "lake", PATTERN, where)

    assert sorted(row["global_seq"] for row in found.collect()) == wanted


@pytest.mark.parametrize(("after", "through"), [(0, 200), (0, 201), (199, 201), (200, 300), (60, 120), (50, 50)])
def test_every_position_is_read_once_wherever_it_is(spark: SparkSession, place: Path, after: int, through: int) -> None:
    log = DeltaLog(place / "lake" / "journal")

    found = entries(spark, _url(place), log, position_range(_url(place), log, after, through))

    assert sorted(row["global_seq"] for row in found.select("global_seq").collect()) == [*range(after + 1, through + 1)]


def test_what_was_archived_is_read_in_the_lake(spark: SparkSession, durable_url: str, log: DeltaLog) -> None:
    anyio.run(_archived, durable_url, log)

    told = summarize_dry_run(
        spark, durable_url, log.table.parent, HistoryQuery(pattern="/n/3/*", where="payload.n >= 0")
    )

    assert told.matches == len([n for n in range(70) if n % 7 == 3]) + len([n for n in range(14) if n % 7 == 3])
    assert told.cost.entries == 84


async def _archived(url: str, log: DeltaLog) -> None:
    async with opened(url) as (store, journal):
        await say(journal, 70)
        await fill(store, log, url)
        await archive(store, log, LATER, ignore)
        await say(journal, 14)


def test_without_a_lake_the_journal_says_it_all(spark: SparkSession, url: str, log: DeltaLog) -> None:
    append(url, [Event(run_id="r", payload={"n": n}) for n in range(10)])

    told = summarize_dry_run(spark, url, log.table.parent, HistoryQuery(pattern="/**", where="payload.n > 6"))

    assert (told.matches, told.cost.entries, told.cost.native) == (3, 10, 1.0)


def test_where_nothing_was_said_nothing_matches(spark: SparkSession, url: str, log: DeltaLog) -> None:
    append(url, [])

    told = summarize_dry_run(spark, url, log.table.parent, HistoryQuery(pattern="/**", where="payload.n > 6"))

    assert (told.matches, told.first, told.last, told.days, told.samples, told.errors) == (0, None, None, (), (), ())


def test_the_value_before_is_the_one_the_matcher_sees(spark: SparkSession, url: str, log: DeltaLog) -> None:
    anyio.run(_change_values, url)
    where = "prev_value_json == '\"ä\\\\n\"'"

    found = dry_run(spark, url, log.table.parent, "/**", where).collect()

    live = [entry for entry in read(url) if Predicate(where).evaluate(bind(entry))]
    assert [row["global_seq"] for row in found] == [entry.global_seq for entry in live] == [2]
    assert found[0]["prev_value_json"] == '"ä\\n"'


async def _change_values(url: str) -> None:
    """Two changes as the ledger of values tells them, and an event that only looks like one."""
    before = '"ä\\n"'
    told = [Event(run_id="r", kind="value", payload={"prev_value_json": each}) for each in (None, before)]
    looks_like = Event(run_id="r", payload={"prev_value_json": before})
    async with opened(url) as (store, _), store.transaction() as transaction:
        transaction.append(Request(events=(*told, looks_like), opens=True))


def test_since_leaves_out_what_is_older(spark: SparkSession, place: Path) -> None:
    found = read(_url(place))
    since = datetime.fromtimestamp(found[250].ts_ms / 1000, UTC)
    later = [entry for entry in found if entry.ts_ms >= found[250].ts_ms]

    told = summarize_dry_run(spark, _url(place), place / "lake", HistoryQuery(pattern="/**", since=since))
    none = summarize_dry_run(
        spark, _url(place), place / "lake", HistoryQuery(pattern="/**", since=since + timedelta(days=1))
    )

    assert (told.matches, told.cost.entries, none.matches) == (len(later), len(later), 0)


@pytest.mark.parametrize(
    ("after", "through", "error"), [(301, None, InvalidCursor), (0, 301, InvalidCursor), (10, 5, UsageError)]
)
def test_what_is_not_there_cannot_be_asked_for(
    place: Path, after: int, through: int | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        position_range(_url(place), DeltaLog(place / "lake" / "journal"), after, through)


def test_another_journals_lake_is_refused(place: Path, url: str) -> None:
    append(url, [Event(run_id="other", payload=n) for n in range(COLD + WARM)])

    with pytest.raises(Conflict, match="another journal's lake"):
        position_range(url, DeltaLog(place / "lake" / "journal"))


def test_history_that_nobody_has_is_a_gap(url: str, log: DeltaLog) -> None:
    anyio.run(_forget, url)

    with pytest.raises(BrokerOverflowError):
        position_range(url, log)


async def _forget(url: str) -> None:
    async with opened(url) as (store, journal):
        await say(journal, 10)
        await store.retention.trim(GlobalSeq(4))


def test_the_command_says_it_all_in_json(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_DATA", str(place))
    where, picture = PREDICATES["evaluator"], place / "matches.svg"
    asked = ["--subject", PATTERN, "--where", where, "--explain", "--plot", str(picture), "--json"]
    command = ["reaction", "dry-run", "--store", _url(place), "--lake", str(place / "lake"), *asked]

    assert run(command) == 0

    told = json.loads(capsys.readouterr().out)
    live = judged(read(_url(place)), where)
    assert told["matches"] == sum(bool(verdict) for _, verdict in live)
    assert sum(cause["entries"] for cause in told["errors"]) == sum(verdict.error is not None for _, verdict in live)
    assert [part["route"] for part in told["explain"]] == ["udf"]
    assert told["cost"]["entries"] == COLD + WARM and 0 < told["cost"]["asked"] <= COLD + WARM
    assert picture.read_text().startswith("<svg") and "var(--" in picture.read_text()


def test_the_command_says_it_to_people(
    spark: SparkSession, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_DATA", str(place))
    span = ["--from", "10", "--to", "290"]
    command = ["reaction", "dry-run", "--store", _url(place), "--lake", str(place / "lake")]

    assert run([*command, *span, "--subject", PATTERN, "--where", PREDICATES["always an error"]]) == 0

    said = capsys.readouterr().out
    assert "0 matches" in said and "280 entries" in said and "divide by zero" in said


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--since", "7d", "--from", "1"], "--since"),
        (["--where", "seq > 'a'"], "no matching overload"),
        (["--plot", "matches.txt"], ".png or .svg"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_spark_starts(
    place: Path, arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["reaction", "dry-run", "--store", _url(place), "--subject", "/**", *arguments]

    assert run(command) == 2 and reason in capsys.readouterr().err


def test_a_sparkline_is_as_high_as_the_days_are_full() -> None:
    assert sparkline([1, 4, 0, 8]) == "▁▄ █"
    assert sparkline([5]) == "█" and sparkline([]) == ""


def test_a_long_sparkline_adds_days_up() -> None:
    assert sparkline([1] * 100 + [0] * 100, cells=4) == "██  "
