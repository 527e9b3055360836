"""Checks a history: the judges of all invariants that a history can show, and why it cannot show the others."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tape.checker import appends, copies, streams, work
from tape.checker.history import RecordedHistory
from tape.checker.invariant_result import InvariantResult
from tape.checker.lines import read, read_terms

JUDGES: Final[Mapping[str, tuple[str, Callable[[RecordedHistory], InvariantResult]]]] = MappingProxyType(
    {
        "P1": ("acknowledged appends survive", appends.acknowledged_appends_survive),
        "P2": ("a request is all there or absent", appends.requests_are_whole),
        "P3": ("same key, one append", appends.keys_append_once),
        "P4": ("seqs are 1…n and rise with positions", appends.seqs_are_dense),
        "P5": ("no late arrivals", appends.positions_never_come_late),
        "P6": ("exact resume or an explicit gap", streams.streams_resume_exactly),
        "P7": ("no stream ends without a reason", streams.streams_end_with_a_reason),
        "P10": ("one task per reaction and match", work.matches_make_one_task),
        "P11": ("only the newest attempt settles", work.only_newest_attempts_settle),
        "P12": ("every task ends", work.tasks_end),
        "P13": ("limits are global", work.limits_are_global),
        "P14": ("published if and only if committed", copies.published_means_committed),
        "P15": ("generations are isolated", copies.generations_are_isolated),
        "P16": ("a fork never changes its parent", copies.forks_leave_their_parent),
        "P17": ("the lake holds each position once", copies.lakes_hold_each_position_once),
    }
)
NOT_JUDGED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "P8": "a slow reader hurts only itself: this shows in the latency and memory of others, which a history lacks",
        "P9": "lost wake-ups change latency only: clients see no wake-ups; lose them, and judge P5 and P6",
        "P18": "all stores agree: a history is of one store",
    }
)


def check(path: Path) -> dict[str, InvariantResult]:
    """What each judge finds in a file; it is read twice, because a term may be recorded after what it explains."""
    with path.open("rb") as file:
        terms = read_terms(file)
    with path.open("rb") as file:
        history = RecordedHistory.collect(read(file), terms)
    return judge(history)


def judge(history: RecordedHistory) -> dict[str, InvariantResult]:
    return {invariant: find(history) for invariant, (_, find) in JUDGES.items()}
