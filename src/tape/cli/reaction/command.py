"""`tape reaction`: add, look at, explain, pause, resume and remove reactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tape.cli import output
from tape.cli.choices import Choices, ask_node, shared
from tape.cli.doctor.facts import write_facts
from tape.cli.noun_group import NounGroup
from tape.cli.reaction.backfill import backfill
from tape.cli.reaction.dry_run import dry_run
from tape.cli.reaction.explain import explain

if TYPE_CHECKING:
    from tape.core.matched import ReactionRecord
    from tape.sdk.nouns.node import AsyncNode

_KINDS = {1: "agent", 2: "task", 3: "publish"}


@click.group(cls=NounGroup, no_args_is_help=False)
@shared
def reaction() -> None:
    """Add, look at, pause, resume and remove reactions."""


@reaction.command()
@click.argument("reaction_id", metavar="ID")
@click.argument("subject_pattern", metavar="PATTERN")
@click.option("--where", "predicate_cel", metavar="CEL", default="", help="Only for entries this holds for.")
@click.option("--name", default="", help="What people call it.")
@click.option("--agent", "agent_app", metavar="APP", default="", help="Start a run of this app.")
@click.option(
    "--publish", "publish_target", metavar="TARGET", default="", help="Publish, as to pubsub://project/topic."
)
@click.option("--max-concurrency", type=int, default=1, show_default=True, help="Tasks at a time, over all workers.")
@click.option("--rate", "rate_limit_per_s", type=int, default=0, help="Starts a second, over all workers.")
@click.option("--debounce-ms", type=int, default=0, help="Wait for so long a silence on a subject.")
@click.option("--retry-max", type=int, default=5, show_default=True, help="Attempts after the first.")
@click.option("--retry-backoff-ms", type=int, default=1000, show_default=True, help="The first wait; it doubles.")
@click.option("--dlq-after-n", type=int, default=5, show_default=True, help="Attempts at most.")
@click.option("--shards", "num_shards", type=int, default=1, show_default=True, help="Parts to claim separately.")
@click.option("--timeout-ms", type=int, default=3_600_000, show_default=True, help="How long an attempt may take.")
@click.option("--from-head", "bootstrap_from_head", is_flag=True, help="Leave out what happened before.")
@shared
@click.pass_obj
def add(choices: Choices, /, **options: Any) -> None:
    """Register a reaction ID to subjects of PATTERN, or change it.

    All of the history is matched unless --from-head is given; registering again never repeats anything.
    """
    from tape.core.reaction import HandlerKind, Reaction

    kind = HandlerKind.TASK
    if options["agent_app"]:
        kind = HandlerKind.AGENT
    if options["publish_target"]:
        kind = HandlerKind.PUBLISH
    asked = Reaction(handler_kind=kind, **options)
    _show(choices, ask_node(choices, lambda node: node.reactions.register(asked), must_exist=False))


@reaction.command("ls")
@click.argument("subject_pattern", metavar="[PATTERN]", default="")
@shared
@click.pass_obj
def list_reactions(choices: Choices, subject_pattern: str) -> None:
    """List reactions, all or those of exactly PATTERN."""
    records = ask_node(choices, lambda node: _all(node, subject_pattern))
    if choices.is_json:
        for record in records:
            output.write_record(record)
    else:
        output.listing(map(_line, records), "there is nothing to react; tape reaction add registers a reaction")


async def _all(node: AsyncNode, subject_pattern: str) -> list[ReactionRecord]:
    page = await node.reactions.list(subject_pattern)
    rows = [*page.rows]
    while page.next_cursor:
        page = await node.reactions.list(subject_pattern, cursor=page.next_cursor)
        rows += page.rows
    return rows


def _show(choices: Choices, record: ReactionRecord) -> None:
    from tape.wire.result_json import plain

    facts = plain(record)
    if choices.is_json:
        output.write_json(facts)
    else:
        write_facts({**facts, "handler_kind": record.reaction.handler_kind})


def _line(record: ReactionRecord) -> tuple[str, ...]:
    state = output.paint("paused", "yellow") if record.paused else output.paint("active", "green")
    trouble = output.count(record.errors, "error", "errors") if record.errors else ""
    rule = record.reaction
    kind, place = _KINDS[rule.handler_kind], f"at {record.cursor:,}"
    return state, output.paint(output.escape(rule.reaction_id), "bold"), kind, place, rule.subject_pattern, trouble


reaction.add_command(backfill)
reaction.add_command(dry_run)
reaction.add_command(explain)
