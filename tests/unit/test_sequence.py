"""Requests: what may be asked in one."""

import pytest

from tape.core.errors import TooLarge, UsageError
from tape.core.event import Event
from tape.core.ids import GlobalSeq, Seq
from tape.core.sequence import Accepted, CellChange, CellId, Known, Request, decide


def said(run_id: str = "r1", payload: object = 1, **more: object) -> Event:
    return Event(run_id=run_id, payload=payload, **more)  # type: ignore[arg-type]


def test_a_request_says_something() -> None:
    with pytest.raises(UsageError, match="at least one event"):
        Request()


def test_a_request_is_at_most_a_thousand_events() -> None:
    assert len(Request(events=(said(),) * 1000).events) == 1000

    with pytest.raises(TooLarge, match="1,000 events, not 1,001"):
        Request(events=(said(),) * 1001)


def test_a_request_is_at_most_eight_mebibytes() -> None:
    mebibyte = said(payload="é" * ((1 << 19) - 1))

    assert Request(events=(mebibyte,) * 8).size == 8 << 20
    with pytest.raises(TooLarge, match="8,388,608 bytes"):
        Request(events=(mebibyte,) * 8 + (said(),))


@pytest.mark.parametrize("key", ["", "x" * 257, "a\nb", "a\0", 5, b"x"])
def test_a_key_is_short_and_printable(key: object) -> None:
    with pytest.raises(UsageError, match="a key is"):
        Request(events=(said(),), key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize("expected", [-1, "0", False, 1.0])
def test_an_expectation_is_a_seq(expected: object) -> None:
    with pytest.raises(UsageError, match="expected_seq is"):
        Request(events=(said(),), expected_seq=expected)  # type: ignore[arg-type]


def test_expected_seq_is_for_one_run() -> None:
    with pytest.raises(UsageError, match="one run, not 2"):
        Request(events=(said("a"), said("b")), expected_seq=Seq(0))


def test_the_events_of_a_run_have_one_content_type() -> None:
    with pytest.raises(UsageError, match="one content_type"):
        Request(events=(said(), said(payload=b"", content_type="text/plain")))


def test_a_request_changes_a_cell_once() -> None:
    cell = CellChange(id=CellId("l", "k"), seen=0, status="", state_json="{}")

    with pytest.raises(UsageError, match="each cell once"):
        Request(cells=(cell, cell))


@pytest.mark.parametrize(
    "other",
    [
        said("r2"),
        said(type="other"),
        said(payload=2),
        said(payload="1"),
        said(subject="/other"),
        said(schema_version=2),
    ],
)
def test_another_body_has_another_digest(other: Event) -> None:
    assert Request(events=(said(),)).digest != Request(events=(other,)).digest


def test_ids_traces_and_attributes_are_no_part_of_the_body() -> None:
    again = said(event_id="other", attributes={"client_id": "c"})

    assert Request(events=(said(),)).digest == Request(events=(again,)).digest


def test_other_cells_are_another_body() -> None:
    one, other = (CellChange(id=CellId("l", "k"), seen=0, status="", state_json=state) for state in ("1", "2"))

    assert Request(cells=(one,)).digest != Request(cells=(other,)).digest


def test_a_body_cannot_be_shifted_between_events() -> None:
    assert (
        Request(events=(said(payload="ab"), said(payload="c"))).digest
        != Request(events=(said(payload="a"), said(payload="bc"))).digest
    )


def test_a_group_numbers_across_runs_in_order() -> None:
    group = [Request(events=(said("a"), said("b")), opens=True), Request(events=(said("b"), said("a")), opens=True)]

    decision = decide(group, Known(GlobalSeq(10), 0))

    assert decision.verdicts == [
        Accepted(GlobalSeq(11), (Seq(1), Seq(1)), (0, 0)),
        Accepted(GlobalSeq(13), (Seq(2), Seq(2)), (0, 0)),
    ]
    assert decision.head == 14
