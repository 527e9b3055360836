"""The tables of the ledgers, row by row: from entries written by hand, and from those that real ledgers write."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
from pyspark.sql import SparkSession

from tape.bus.journal import Journal
from tape.compose import open_backend
from tape.core.effect import EffectStatus, Semantics
from tape.core.event import Event
from tape.lake import ledger_tables, tables
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode
from tests.lake.frames import assert_rows, journal_of

BEGUN: dict[str, Any] = {"decision_index": 0, "semantics": "idempotent", "dispatch_mode": "inline"}


def effect(run_id: str, verb: str, key: str = "k", tool: str = "wire", **more: Any) -> Event:
    status = str(more.pop("status", verb))
    payload = {"tool": tool, "idempotency_key": key, "status": status, **more}
    return Event(run_id=run_id, kind="effect", type=verb, payload=payload)


def budget(run_id: str, verb: str, cap: float | None, spent: float, reserved: float = 0) -> Event:
    payload = {
        "usd_cap": cap, "token_cap": None, "usd_spent": spent, "tokens_spent": 7, "usd_reserved": reserved,
        "tokens_reserved": 0,
    }  # fmt: skip
    return Event(run_id=run_id, kind="budget", type=verb, payload=payload)  # type: ignore[arg-type]


def decision(run_id: str, index: int, model: str = "m") -> Event:
    payload = {"decision_index": index, "model": model, "policy_version": "p", "rationale": ""}
    return Event(run_id=run_id, kind="decision", type="recorded", payload=payload)  # type: ignore[arg-type]


def test_an_effect_took_from_its_intent_to_its_outcome(spark: SparkSession) -> None:
    journal = journal_of(
        spark,
        effect("a", "pending", **BEGUN),
        effect("b", "pending", **BEGUN),
        effect("a", "confirmed"),
        effect("b", "unknown"),
        effect("c", "pending", **{**BEGUN, "decision_index": -1}),
        effect("b", "reconciled", status="failed"),
    )

    assert_rows(
        ledger_tables.effects(journal),
        ("a", "k", "wire", "confirmed", 0, "idempotent", "inline", 0, 2_000, 2_000),
        ("b", "k", "wire", "failed", 0, "idempotent", "inline", 1_000, 5_000, 4_000),
        ("c", "k", "wire", "pending", -1, "idempotent", "inline", 4_000, None, None),
    )


def test_an_effect_that_was_not_found_outside_is_pending_again(spark: SparkSession) -> None:
    again = effect("a", "pending", transition="observed_absent")
    journal = journal_of(spark, effect("a", "pending", **BEGUN), effect("a", "unknown"), again)

    assert_rows(
        ledger_tables.effects(journal), ("pending", 0, "idempotent", 0, None),
        columns="status decision_index semantics began_ts_ms latency_ms",
    )  # fmt: skip


def test_latencies_are_those_of_a_tool_and_looking_is_no_effect(spark: SparkSession) -> None:
    pairs = [(effect("a", "pending", f"k{n}", **BEGUN), effect("a", "confirmed", f"k{n}")) for n in range(3)]
    seen = {**BEGUN, "semantics": "observe_only"}
    journal = journal_of(
        spark,
        *(event for pair in pairs for event in pair),
        effect("b", "pending", "slow", **BEGUN),
        effect("b", "pending", "lost", tool="post", **BEGUN),
        effect("b", "unknown", "lost", tool="post"),
        effect("b", "pending", "s", tool="sample-now", **seen),
        effect("b", "failed", "slow"),
    )

    assert_rows(
        ledger_tables.effect_latencies(journal),
        ("post", 1, 0, 0, 1, None, None, None),
        ("wire", 4, 3, 1, 0, 1_000.0, 3_550.0, 4_000),
    )


def test_a_decision_has_its_effects(spark: SparkSession) -> None:
    journal = journal_of(
        spark,
        decision("a", 0),
        effect("a", "pending", "1", **BEGUN),
        effect("a", "confirmed", "1"),
        effect("a", "pending", "2", tool="post", **BEGUN),
        effect("a", "failed", "2", tool="post"),
        decision("a", 1, "n"),
        decision("b", 0),
    )

    assert_rows(
        ledger_tables.decisions(journal),
        ("a", 0, "m", "p", 0, 2, 1, 1, "post, wire"),
        ("a", 1, "n", "p", 5_000, 0, 0, 0, ""),
        ("b", 0, "m", "p", 6_000, 0, 0, 0, ""),
    )


def test_a_budget_is_its_last_entry(spark: SparkSession) -> None:
    journal = journal_of(
        spark, budget("a", "set", 1.0, 0), budget("b", "charged", None, 3), budget("a", "reserved", 1.0, 0, 0.5),
        budget("a", "settled", 2.0, 0.25),
    )  # fmt: skip

    assert_rows(
        ledger_tables.budgets(journal), ("a", 2.0, None, 0.25, 0.0, 7, 0, 3), ("b", None, None, 3.0, 0.0, 7, 0, 1)
    )


def test_an_invalid_ledger_entry_is_in_quarantine(spark: SparkSession) -> None:
    odd = [
        Event(run_id="a", kind="effect", type="confirmed", payload={"tool": "wire", "status": "confirmed"}),
        Event(run_id="a", kind="decision", type="recorded", payload={"decision_index": -1, "model": "m"}),
        Event(run_id="a", kind="budget", type="set", payload={"usd_spent": "much"}),
    ]

    assert_rows(
        tables.quarantine(journal_of(spark, *odd)),
        ("effects", "idempotency_key is missing"),
        ("decisions", "decision_index is not a whole number from 0 to 1000000000000"),
        ("budgets", "usd_spent is not a number up to 1000000000000000"),
        columns="table reason",
    )


def test_every_entry_of_real_ledgers_is_read(spark: SparkSession, tmp_path: Path) -> None:
    run_id, events = anyio.run(partial(_run_with_ledgers, f"sqlite:///{tmp_path / 'tape.db'}"))
    journal = journal_of(spark, *events)

    assert_rows(tables.quarantine(journal))
    assert_rows(
        ledger_tables.effects(journal),
        ("look", "confirmed", "observe_only"), ("post", "unknown", "idempotent"), ("wire", "confirmed", "idempotent"),
        columns="tool status semantics",
    )  # fmt: skip
    assert_rows(
        ledger_tables.decisions(journal), (run_id, 0, 1, "wire"), columns="run_id decision_index n_effects tools"
    )
    assert_rows(
        ledger_tables.budgets(journal),
        (1.0, None, 0.25, 0.5, 3),
        columns="usd_cap token_cap usd_spent usd_reserved n_changes",
    )


async def _run_with_ledgers(url: str) -> tuple[str, list[Event]]:
    """A run with decisions, effects and a budget, and its events."""
    async with open_backend(url) as backend:
        node = AsyncNode(LocalLedgers(backend.store, backend.journal))
        run_id = (await node.runs.begin("app", owner="w")).run.run_id
        await node.budgets.set(run_id, 1)
        await node.budgets.reserve(run_id, "r", 0.5)
        await node.budgets.charge(run_id, 0.25)
        await node.decisions.record(run_id, 0, model="m")
        for tool, index, semantics, status in (
            ("wire", 0, Semantics.IDEMPOTENT, EffectStatus.CONFIRMED),
            ("post", -1, Semantics.IDEMPOTENT, EffectStatus.UNKNOWN),
            ("look", 0, Semantics.OBSERVE_ONLY, EffectStatus.CONFIRMED),
        ):
            begun = await node.effects.begin(run_id, tool, decision_index=index, semantics=semantics)
            await node.effects.complete(run_id, begun.idempotency_key, status)
        return run_id, await _events(backend.journal)
    raise AssertionError("unreachable")


async def _events(journal: Journal) -> list[Event]:
    return [
        Event(run_id=each.run_id, kind=each.kind, type=each.type, subject=each.subject, payload=each.payload)
        async for each in journal.stream(follow=False)
    ]
