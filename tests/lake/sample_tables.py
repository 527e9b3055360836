"""Tables of a lake, written by hand, with hostile names."""

from typing import Any

from tape.core.ids import GlobalSeq
from tape.core.lake import LakeStatus
from tape.core.ports import Bounds

MINUTE_MS = 60_000
HOSTILE = '</title><script>alert(1)</script>$x_{1}$ #3b6fb6 \\frac ☃ 漢字 "&'

Rows = list[dict[str, Any]]


def status(cold: int = 900, floor: int = 501, head: int = 1_000) -> LakeStatus:
    return LakeStatus(
        cold=Bounds(GlobalSeq(1), GlobalSeq(cold)),
        warm=Bounds(GlobalSeq(floor), GlobalSeq(head)),
        hot=Bounds(GlobalSeq(head - 99), GlobalSeq(head)),
        lag=head - cold,
        lag_ms=5,
        files=3,
        bytes=1_000,
        version=2,
        committed_at_ms=0,
    )


def tables(minutes: int = 30, name: str = HOSTILE) -> dict[str, Rows]:
    """A run and its fork, and agents that use models and tools."""
    return {
        "runs": [
            run("arena"),
            run("child", "arena", 40),
            run("tape.value.0", status="system"),
            run(name, status="failed"),
        ],
        "types_per_minute": [
            {"minute_ms": minute * MINUTE_MS, "kind": "event", "type": type_name, "n_events": 10 + minute}
            for minute in range(minutes)
            for type_name in ("action", "metric", name)
        ],
        "subjects_per_minute": [{"minute_ms": 0, "subject": "/arena/ada", "n_events": 7}],
        "model_usage": [
            {"run_id": "arena", "model": name, "n_calls": 2, "prompt_tokens": 90, "tokens": 7, "cost_usd": 1.25},
            {"run_id": "child", "model": name, "n_calls": 2, "prompt_tokens": 10, "tokens": 3, "cost_usd": 0.75},
        ],
        "tool_usage": [
            {"run_id": "arena", "tool": "gather", "n_asked": 4, "n_ok": 3, "n_failed": 1},
            {"run_id": "arena", "tool": "asked-only", "n_asked": 4, "n_ok": 0, "n_failed": 0},
        ],
        "metrics": [metric("arena", turn, 80 + turn) for turn in range(1, 7)]
        + [metric("child", turn, 80 - turn) for turn in range(3, 7)],
        "forks": [fork("child", "arena", name)],
        "effects": [effect(name)],
        "reactions": [reaction(name)],
        "effect_latencies": [
            {
                "tool": name,
                "n_effects": 4,
                "n_confirmed": 3,
                "n_failed": 1,
                "n_unknown": 0,
                "p50_ms": 40.0,
                "p95_ms": 12_000.0,
                "max_ms": 15_000,
            },
            {
                "tool": "never-answered",
                "n_effects": 1,
                "n_confirmed": 0,
                "n_failed": 0,
                "n_unknown": 1,
                "p50_ms": None,
                "p95_ms": None,
                "max_ms": None,
            },
        ],
        "decisions": [decision("arena", 0, name), decision("child", 1, name)],
        "budgets": [budget("arena", 2.0), budget(name, 0.5), budget("boundless", None)],
        "quarantine": [{"global_seq": 9, "table": "metrics", "reason": name, "payload_json": "{}"}],
    }


def run(run_id: str, parent: str | None = None, at_seq: int | None = None, status: str = "open") -> dict[str, Any]:
    return {
        "run_id": run_id, "status": status, "parent_run_id": parent, "at_seq": at_seq, "n_events": 100,
        "first_ts_ms": 0, "last_ts_ms": 9_000, "duration_ms": 9_000, "first_global_seq": 1, "last_global_seq": 100,
    }  # fmt: skip


def effect(tool: str) -> dict[str, Any]:
    return {
        "run_id": "arena", "idempotency_key": "k", "tool": tool, "status": "confirmed", "decision_index": 0,
        "semantics": "idempotent", "dispatch_mode": "inline", "began_ts_ms": 0, "settled_ts_ms": 40, "latency_ms": 40,
    }  # fmt: skip


def decision(run_id: str, index: int, name: str) -> dict[str, Any]:
    return {
        "run_id": run_id, "decision_index": index, "model": name, "policy_version": "", "ts_ms": 0, "n_effects": 2,
        "n_confirmed": 1, "n_failed": 1, "tools": f"wire, {name.replace(', ', '')}",
    }  # fmt: skip


def budget(run_id: str, cap: float | None) -> dict[str, Any]:
    return {
        "run_id": run_id, "usd_cap": cap, "token_cap": None, "usd_spent": 1.0, "usd_reserved": 0.25,
        "tokens_spent": 10, "tokens_reserved": 0, "n_changes": 3,
    }  # fmt: skip


def metric(run_id: str, turn: int, value: float) -> dict[str, Any]:
    return {"run_id": run_id, "name": "prosperity", "agent": "ada", "turn_num": turn, "value": float(value)}


def fork(run_id: str, parent: str, reason: str) -> dict[str, Any]:
    return {
        "run_id": run_id, "parent_run_id": parent, "at_seq": 40, "parted_global_seq": 40, "parted_ts_ms": 3_000,
        "forked_ts_ms": 5_000, "reason": reason, "mutation_json": reason, "agent": "ada", "turn_num": 6,
        "parent_value": 86.0, "value": 74.0, "difference": -12.0,
    }  # fmt: skip


def reaction(name: str) -> dict[str, Any]:
    """A reaction with dead tasks."""
    definition = {"reaction_id": "rule", "subject_pattern": "/a/**", "predicate_cel": name, "status": "matching"}
    return {**definition, "n_pauses": 1, "n_dead": 3, "n_replayed": 2}
