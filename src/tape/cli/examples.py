"""Adds an example to the help of every command, and short names for the values of its options."""

from __future__ import annotations

from typing import Final

import click

EXAMPLES: Final = {
    "tape": "tape publish order-1 '{\"price\": 40}' --type placed --open",
    "tape serve": "tape serve --store postgresql://localhost/tape",
    "tape demo": "tape demo --no-lake",
    "tape publish": "tape publish order-1 '{\"price\": 40}' --type placed --open",
    "tape tail": "tape tail '/tape/event/placed/**' --where 'payload.price > 10.0'",
    "tape run": "tape run ls",
    "tape run ls": "tape run ls --app shop --status open",
    "tape run open": "tape run open order-1 --label 'the first order' --app shop",
    "tape run show": "tape run show order-1",
    "tape run fork": "tape run fork order-1 --at 3 --mutation '{\"price\": 90}' --reason 'what if'",
    "tape run diff": "tape run diff order-1 fork-1",
    "tape run signal": "tape run signal run-1 approval '\"yes\"' --key approved-by-ann",
    "tape run sweep": "tape run sweep world --at 41 --vary food=0,100,500 --plot ends.png",
    "tape value": "tape value get treasury fx",
    "tape value get": "tape value get treasury fx",
    "tape value set": "tape value set treasury fx '{\"eur\": 1.08}' --if-version 3",
    "tape value delete": "tape value delete treasury fx",
    "tape value history": "tape value history treasury fx --limit 10",
    "tape value watch": "tape value watch treasury fx --count 1",
    "tape reaction": "tape reaction ls",
    "tape reaction add": "tape reaction add big-orders '/shop/order/*' --where 'payload.price > 100.0' --agent review",
    "tape reaction ls": "tape reaction ls",
    "tape reaction explain": "tape reaction explain big-orders 17",
    "tape reaction dry-run": "tape reaction dry-run --subject '/shop/order/*' --since 7d",
    "tape reaction backfill": "tape reaction backfill big-orders",
    "tape task": "tape task ls --status dlq",
    "tape task ls": "tape task ls --status dlq",
    "tape task replay": "tape task replay --reaction big-orders",
    "tape work": "tape work shop.reactions --slots 32",
    "tape journal": "tape journal verify",
    "tape journal verify": "tape journal verify",
    "tape journal archive": "tape journal archive --keep 7d",
    "tape outbox": "tape outbox stats",
    "tape outbox migrate": "tape outbox migrate --store postgresql://localhost/shop",
    "tape outbox ls": "tape outbox ls --status failed",
    "tape outbox show": "tape outbox show 0190b7a8-3f5c-7c1d-9a8e-0f2b4c6d8e01",
    "tape outbox replay": "tape outbox replay --failed --type orders.placed",
    "tape outbox hand-over": "tape outbox hand-over 1 --generation 2",
    "tape outbox retention": "tape outbox retention --active 45d",
    "tape outbox partition": "tape outbox partition",
    "tape outbox relay": "tape outbox relay --to nats://events.orders --once",
    "tape outbox stats": "tape outbox stats",
    "tape outbox contracts": "tape outbox contracts check shop.contracts",
    "tape outbox contracts check": "tape outbox contracts check shop.contracts",
    "tape outbox contracts catalog": "tape outbox contracts catalog shop.contracts --output EVENTS.md",
    "tape lake": "tape lake status",
    "tape lake sync": "tape lake sync --follow",
    "tape lake status": "tape lake status",
    "tape lake compact": "tape lake compact",
    "tape lake vacuum": "tape lake vacuum --grace 1d",
    "tape lake verify": "tape lake verify --deep",
    "tape lake as-of": "tape lake as-of 5000 'select count(*) from journal'",
    "tape lake query": "tape lake query 'select type, count(*) from journal group by type'",
    "tape lake tables": "tape lake tables runs types",
    "tape lake report": "tape lake report --out report.html",
    "tape migrate": "tape migrate --store postgresql://localhost/tape",
    "tape doctor": "tape doctor --store postgresql://localhost/tape",
    "tape check-history": "tape check-history history.jsonl",
    "tape operations": "tape operations --json",
    "tape decision": "tape decision ls order-1",
    "tape effect": "tape effect ls order-1",
    "tape obligation": "tape obligation ls order-1",
    "tape gate": "tape gate show order-1 approval",
    "tape timer": "tape timer due",
    "tape budget": "tape budget show order-1",
    "tape session": "tape session ls shop ann",
    "tape completion": 'eval "$(tape completion bash)"',
}


def add_examples(command: click.Command, path: str) -> None:
    """Adds the examples of a command and its subcommands."""
    if path in EXAMPLES:
        command.epilog = f"\b\nExample:\n  {EXAMPLES[path]}"
    for parameter in command.params:
        if parameter.metavar is None and isinstance(
            parameter.type, click.types.IntParamType | click.types.FloatParamType
        ):
            parameter.metavar = "N"
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            add_examples(child, f"{path} {name}")
