"""What 100 predicates on one entry cost, beside the Rust CEL of the package common-expression-language."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from statistics import median
from time import process_time
from typing import Any, NamedTuple

from tape.core.predicate.predicate import Predicate, bind

PREDICATES = 100
ENTRIES = 20
GOAL = 10

Judge = Callable[["Order"], list[bool]]
Payload = Callable[[int], dict[str, object]]


class Order(NamedTuple):
    """An entry as a predicate sees it."""

    global_seq: int
    run_id: str = "r-1"
    seq: int = 1
    kind: str = "event"
    type: str = "order.placed"
    subject: str = "/tape/event/order.placed/r-1"
    ts_ms: int = 1_700_000_000_000
    schema_version: int = 1
    payload: object = None
    trace_id: str = "0af7651916cd43dd8448eb211c80319c"
    prev_value_json: str = ""


def measure(repetitions: int = 5) -> list[dict[str, object]]:
    """Rows of `bench/latest.json`; the sides of a ratio take turns, and a ratio is the median over the turns.

    A dict is converted again for each predicate, so the ratio grows with the payload: three sizes are shown.
    """
    texts, payloads = _texts(), (_lean, partial(_full, 1), partial(_full, 12))
    sides = _ours(texts), *_peers(texts)
    return [row for payload in payloads for row in _compare(sides, payload, repetitions)]


def _compare(sides: Sequence[Judge], payload: Payload, repetitions: int) -> list[dict[str, object]]:
    orders = [Order(global_seq=number, payload=payload(number)) for number in range(ENTRIES)]
    answers = [[side(order) for order in orders] for side in sides]
    assert answers[0] == answers[1] == answers[2]
    turns = [[_rate(side, orders) for side in sides] for _ in range(repetitions)]
    name = f"100 predicates on an entry of {len(json.dumps(orders[0].payload)):,} bytes, peer given"
    return [
        _row(f"{name} a dict", [(ours, peer) for ours, peer, _ in turns], GOAL),
        _row(f"{name} its context again", [(ours, peer) for ours, _, peer in turns]),
    ]


def _texts() -> list[str]:
    shapes = (
        "payload.status == 'error' && payload.amount > {}.0 && payload.user.tier == 'pro'",
        "type == 'order.placed' && payload.items.exists(i, i.quantity > {})",
        "subject.startsWith('/tape/event/') && payload.user.id == {}",
        "payload.region in ['eu', 'us'] || global_seq == {}",
    )
    return [shapes[number % len(shapes)].format(number) for number in range(PREDICATES)]


def _lean(number: int) -> dict[str, object]:
    user, items = {"id": number, "tier": "pro"}, [{"quantity": 3}]
    return {"status": "error", "amount": 50.5, "region": "eu", "user": user, "items": items}


def _full(count: int, number: int) -> dict[str, object]:
    items = [{"sku": f"sku-{item}", "quantity": item, "price": 9.99, "tags": ["new", "sale"]} for item in range(count)]
    user = {"id": number, "tier": "pro", "name": "Ada Lovelace", "email": "ada@example.org"}
    return {"status": "error", "amount": 50.5, "region": "eu", "user": user, "items": items}


def _ours(texts: list[str]) -> Judge:
    predicates = [Predicate(text) for text in texts]

    def judge(order: Order) -> list[bool]:
        activation = bind(order)
        return [predicate.evaluate(activation).matched for predicate in predicates]

    return judge


def _peers(texts: list[str]) -> tuple[Judge, Judge]:
    cel = import_module("cel")
    programs = [cel.compile(text) for text in texts]
    return partial(_execute, programs, dict), partial(_execute, programs, cel.Context)


def _execute(programs: list[Any], context: Callable[[dict[str, object]], Any], order: Order) -> list[bool]:
    variables = context(order._asdict())
    return [program.execute(variables) for program in programs]


def _rate(judge: Judge, orders: list[Order]) -> float:
    """Evaluations a second of CPU time."""
    started = process_time()
    for order in orders:
        judge(order)
    return len(orders) * PREDICATES / (process_time() - started)


def _row(name: str, turns: Sequence[tuple[float, float]], goal: float | None = None) -> dict[str, object]:
    ratios = [ours / peer for ours, peer in turns]
    ratio = median(ratios)
    return {
        "table": "parts",
        "area": "predicates",
        "name": name,
        "ours": round(median(ours for ours, _ in turns)),
        "peer": round(median(peer for _, peer in turns)),
        "unit": "evaluations/s",
        "ratio": round(ratio, 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "goal": goal and f">= {goal}",
        "met": ratio >= goal if goal else None,
        "turns": len(turns),
    }


if __name__ == "__main__":
    for row in measure():
        print(row)
