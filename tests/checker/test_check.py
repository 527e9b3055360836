"""The checker accepts a recorded history, and rejects it after one edit: at least one for each invariant."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tape.checker.check import JUDGES, NOT_JUDGED
from tape.checker.lines import (
    AnyLine,
    AppendedEvent,
    AppendedPosition,
    AppendLine,
    ClaimLine,
    DeliverLine,
    EffectLine,
    EntryLine,
    HandleLine,
    HandOverLine,
    LakeLine,
    MalformedHistory,
    SettleLine,
    StoppedLine,
    StreamLine,
    TaskLine,
    TermLine,
)
from tests.process.recorder import contradictions, findings, read

RECORDED = Path(__file__).with_name("recorded.jsonl")

Lines = list[AnyLine]
Edit = Callable[[Lines], Lines]


@pytest.fixture
def recorded() -> Lines:
    return read(RECORDED)


def places(lines: Lines, kind: type, client: str = "", **fields: object) -> list[int]:
    """Where the lines of a kind stand."""
    return [
        place
        for place, line in enumerate(lines)
        if isinstance(line, kind)
        and client in ("", line.client)
        and all(getattr(line, name) == value for name, value in fields.items())
    ]


def one(kind: type, index: int, client: str = "", /, **fields: object) -> Callable[[Lines], int]:
    return lambda lines: places(lines, kind, client, **fields)[index]


def drop(where: Callable[[Lines], int]) -> Edit:
    return lambda lines: [*lines[: where(lines)], *lines[where(lines) + 1 :]]


def change(where: Callable[[Lines], int], **fields: object) -> Edit:
    return lambda lines: [
        *lines[: where(lines)], replace(lines[where(lines)], **fields), *lines[where(lines) + 1 :]
    ]  # fmt: skip


def insert(before: Callable[[Lines], int], make: Callable[[Lines], AnyLine]) -> Edit:
    return lambda lines: [*lines[: before(lines)], make(lines), *lines[before(lines) :]]


def swap(where: Callable[[Lines], int]) -> Edit:
    """Exchanges a line with the next."""

    def edit(lines: Lines) -> Lines:
        place = where(lines)
        return [*lines[:place], lines[place + 1], lines[place], *lines[place + 2 :]]

    return edit


def an_event(lines: Lines, index: int) -> AppendedEvent:
    invoked = [lines[place] for place in places(lines, AppendLine, step="invoke")]
    return [event for line in invoked if isinstance(line, AppendLine) for event in line.events][index]


def partly_there(lines: Lines) -> AnyLine:
    events = (an_event(lines, -1), AppendedEvent("sales", "nowhere"))
    return AppendLine(client="late", number=1, step="invoke", key="late-1", events=events)


def there_again(lines: Lines) -> AnyLine:
    event = an_event(lines, 0)
    last = lines[places(lines, EntryLine, "reader")[-1]]
    assert isinstance(last, EntryLine)
    return replace(last, run_id="elsewhere", seq=1, global_seq=last.global_seq + 1, event_id=event.event_id)


def a_newer_claim(lines: Lines) -> AnyLine:
    settle = lines[places(lines, SettleLine, step="invoke")[0]]
    assert isinstance(settle, SettleLine)
    return ClaimLine(
        client="other", number=1, step="ok", task_id=settle.task_id, reaction_id="claimed", global_seq=1,
        attempt=settle.attempt + 1,
    )  # fmt: skip


def a_second_effect(lines: Lines) -> AnyLine:
    return lines[places(lines, EffectLine)[0]]


def the_effect_of_a_rollback(lines: Lines) -> AnyLine:
    effect = lines[places(lines, EffectLine)[0]]
    assert isinstance(effect, EffectLine)
    return replace(effect, event_id="3")


def the_lake(lines: Lines) -> LakeLine:
    line = lines[places(lines, LakeLine)[0]]
    assert isinstance(line, LakeLine)
    return line


def with_ranges(more: Callable[[int, int], tuple[tuple[int, int], ...]]) -> Edit:
    def edit(lines: Lines) -> Lines:
        ((first, last),) = the_lake(lines).ranges
        return change(one(LakeLine, 0), ranges=more(first, last))(lines)

    return edit


def the_end(lines: Lines) -> int:
    return len(lines)


READ_TO_THE_END = one(StreamLine, 0, "reader", step="ok")
DOCTORED: list[tuple[str, str, Edit]] = [
    ("P1", "an acknowledged entry is gone", drop(one(EntryLine, 0, "reader", run_id="sales"))),
    ("P2", "a request that failed", change(one(AppendLine, 0, "shop", step="ok"), step="fail")),
    ("P2", "half a request", insert(READ_TO_THE_END, partly_there)),
    ("P3", "an event twice", insert(READ_TO_THE_END, there_again)),
    ("P3", "another answer to a key", change(
        one(AppendLine, 1, "market", step="ok"), positions=(AppendedPosition(4_000, 4),))),
    ("P4", "a seq that does not rise", change(one(EntryLine, 0, "reader", run_id="sales"), seq=7)),
    ("P5", "an order reversed", swap(one(EntryLine, 0, "resumer"))),
    ("P6", "an entry left out of the journal", drop(one(EntryLine, 1, "resumer"))),
    ("P6", "an entry left out at the cursor", drop(one(EntryLine, 0, "resumer"))),
    ("P6", "an entry left out of a run", drop(one(EntryLine, 1, "follower"))),
    ("P6", "an entry left out of a pattern", drop(one(EntryLine, 1, "chooser"))),
    ("P7", "an end without a reason", change(one(StreamLine, 0, "follower", step="ok"), reason="")),
    ("P10", "two tasks for a match", change(one(TaskLine, 0), task_id="another")),
    ("P10", "no task for a match", drop(one(TaskLine, 0))),
    ("P11", "a late settle", insert(one(SettleLine, 0, step="invoke"), a_newer_claim)),
    ("P11", "a task done by a failed attempt", change(one(HandleLine, 0, step="ok"), step="fail")),
    ("P12", "a task that never ends", change(one(TaskLine, 0), status="claimed")),
    ("P13", "two at once", drop(one(HandleLine, 0, step="ok"))),
    ("P14", "an effect twice", insert(one(EffectLine, 0), a_second_effect)),
    ("P14", "an effect of a rollback", insert(one(EffectLine, 0), the_effect_of_a_rollback)),
    ("P14", "a commit without an effect", drop(one(EffectLine, 0))),
    ("P15", "an event of another generation", change(one(DeliverLine, 0, step="invoke"), generation=9)),
    ("P16", "a child that begins with something else", change(one(EntryLine, 0, "brancher"), global_seq=4_000)),
    ("P17", "a position twice", with_ranges(lambda first, last: ((first, last), (last, last)))),
    ("P17", "a position left out", with_ranges(lambda first, last: ((first, 2), (4, last)))),
]  # fmt: skip


def test_nothing_is_wrong_with_the_recorded_history(recorded: Lines) -> None:
    found = findings(recorded)

    assert contradictions(found, *JUDGES) == []
    assert [invariant for invariant in JUDGES if not found[invariant].judged] == []


@pytest.mark.parametrize(("invariant", "what", "edit"), DOCTORED, ids=[f"{each[0]} {each[1]}" for each in DOCTORED])
def test_a_doctored_history_is_rejected(recorded: Lines, invariant: str, what: str, edit: Edit) -> None:
    doctored = edit(recorded)

    anomalies = findings(doctored)[invariant].anomalies

    assert anomalies
    assert all(0 < line <= len(doctored) for anomaly in anomalies for line in anomaly.lines)


def test_every_invariant_is_judged_or_has_a_reason_why_not() -> None:
    assert {*JUDGES} | {*NOT_JUDGED} == {f"P{number}" for number in range(1, 19)}
    assert {invariant for invariant, _, _ in DOCTORED} == {*JUDGES}


def test_a_gap_explains_what_was_left_out(recorded: Lines) -> None:
    from tape.checker.lines import GapLine

    where = places(recorded, EntryLine, "resumer")[1]
    left_out = recorded[where]
    assert isinstance(left_out, EntryLine)
    gap = GapLine(client="resumer", number=left_out.number, after=left_out.global_seq)

    assert contradictions(findings([*recorded[:where], gap, *recorded[where + 1 :]]), "P6") == []


def test_a_hand_over_explains_another_generation(recorded: Lines) -> None:
    doctored = change(one(DeliverLine, 0, step="invoke"), generation=9)(recorded)

    handed_over = [HandOverLine(client="owner", generation=generation, to=9) for generation in (1, 2)]

    assert contradictions(findings([*handed_over, *doctored]), "P15") == []


def test_a_killed_worker_runs_nothing(recorded: Lines) -> None:
    doctored = drop(one(HandleLine, 0, step="ok"))(recorded)
    place = places(doctored, HandleLine)[1]

    killed = [*doctored[:place], StoppedLine(client="worker"), *doctored[place:]]

    assert contradictions(findings(killed), "P13") == []


@pytest.mark.parametrize("is_lossless", [False, True])
def test_a_promotion_may_lose_what_a_standby_had_not_received_unless_it_is_synchronous(is_lossless: bool) -> None:
    lines = [*appended(1, 3, epoch=10), *whole_read(2, [1, 2], epoch=20)]
    terms = [
        TermLine(client="db", epoch=10, first=1),
        TermLine(client="db", epoch=20, first=3, is_lossless=is_lossless),
    ]

    found = findings([*lines, *terms])

    assert [each.sentence for each in found["P1"].anomalies] == (
        ["event e3 was acknowledged at 3 and was lost when epoch 20 began"] if is_lossless else []
    )


def test_a_stream_that_goes_on_behind_lost_entries_is_rejected() -> None:
    terms = [TermLine(client="db", epoch=10, first=1), TermLine(client="db", epoch=20, first=3)]
    opened = StreamLine(client="s", number=1, step="invoke", epoch=10)
    before = [entry("s", 1, place, epoch=10) for place in (1, 2, 3)]

    resumed = findings([*terms, opened, *before, entry("s", 1, 4, epoch=20)])

    assert [each.sentence for each in resumed["P6"].anomalies] == ["s went on at 4 behind entries that are gone"]


def test_an_append_below_what_was_seen_before_it_was_sent_is_late() -> None:
    lines = [*whole_read(1, [1, 2, 3], epoch=1), *appended(2, 1, epoch=1, first=2)]

    (late,) = findings(lines)["P5"].anomalies

    assert late.sentence == "an append got position 2 after 3 had been seen"


@pytest.mark.parametrize(
    "line",
    [
        StreamLine(client="new", number=1, step="ok"),
        AppendLine(client="new", number=1, step="ok"),
        EntryLine(client="new", number=1, run_id="r", seq=1, global_seq=1),
        TaskLine(client="new", number=1, task_id="t", reaction_id="r", global_seq=1, status="done", attempt=1),
        EffectLine(client="new", number=1, handler="h", event_id="e"),
        HandleLine(client="new", step="ok", task_id="nobody's", attempt=1),
    ],
)
def test_an_answer_without_its_question_is_malformed(recorded: Lines, line: AnyLine) -> None:
    with pytest.raises(MalformedHistory) as raised:
        findings([*recorded, line])

    assert raised.value.line == len(recorded) + 1


def appended(number: int, count: int, epoch: int, first: int = 1) -> Iterable[AnyLine]:
    events = tuple(AppendedEvent("r", f"e{place}") for place in range(first, first + count))
    positions = tuple(AppendedPosition(place, place) for place in range(first, first + count))
    yield AppendLine(client="w", number=number, step="invoke", events=events)
    yield AppendLine(client="w", number=number, step="ok", positions=positions, epoch=epoch)


def whole_read(number: int, positions: list[int], epoch: int) -> Iterable[AnyLine]:
    yield StreamLine(client="all", number=number, step="invoke", epoch=epoch, is_followed=False)
    yield from (entry("all", number, place, epoch) for place in positions)
    yield StreamLine(client="all", number=number, step="ok")


def entry(client: str, number: int, place: int, epoch: int) -> EntryLine:
    return EntryLine(client=client, number=number, run_id="r", seq=place, global_seq=place, epoch=epoch)
