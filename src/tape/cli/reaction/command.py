"""`tape reaction`: add, look at, explain, pause, resume and remove reactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared, use_node
from tape.cli.doctor.facts import write_facts
from tape.cli.reaction.backfill import backfill
from tape.cli.reaction.dry_run import dry_run
from tape.cli.reaction.explain import explain

if TYPE_CHECKING:
    from tape.core.matched import ReactionRecord
    from tape.sdk.nouns.node import AsyncNode

T = TypeVar("T")

_KINDS = {1: "agent", 2: "task", 3: "publish"}


@click.group(no_args_is_help=False)
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
    _show(choices, finish(partial(use_node, choices, lambda node: node.reactions.register(asked))))


@reaction.command("ls")
@click.argument("subject_pattern", metavar="[PATTERN]", default="")
@shared
@click.pass_obj
def list_reactions(choices: Choices, subject_pattern: str) -> None:
    """List reactions, all or those of exactly PATTERN."""
    records = finish(partial(_call, choices, lambda node: _all(node, subject_pattern)))
    if choices.is_json:
        for record in records:
            output.write_json(_facts(record))
    else:
        output.listing(map(_line, records), "there is nothing to react; tape reaction add registers a reaction")


@reaction.command()
@click.argument("reaction_id", metavar="ID")
@shared
@click.pass_obj
def show(choices: Choices, reaction_id: str) -> None:
    """Show all that is known of ID, with the last error of its predicate."""
    _show(choices, finish(partial(_call, choices, lambda node: _get(node, reaction_id))))


@reaction.command()
@click.argument("reaction_id", metavar="ID")
@click.option("--reason", default="paused", show_default=True, help="Why; the entry says it.")
@shared
@click.pass_obj
def pause(choices: Choices, reaction_id: str, reason: str) -> None:
    """Match and claim nothing more for ID until it is resumed."""
    _show(choices, finish(partial(_call, choices, lambda node: node.reactions.pause(reaction_id, reason))))


@reaction.command()
@click.argument("reaction_id", metavar="ID")
@shared
@click.pass_obj
def resume(choices: Choices, reaction_id: str) -> None:
    """Let ID read on where it was paused."""
    _show(choices, finish(partial(_call, choices, lambda node: node.reactions.resume(reaction_id))))


@reaction.command("rm")
@click.argument("reaction_id", metavar="ID")
@shared
@click.pass_obj
def remove(choices: Choices, reaction_id: str) -> None:
    """Remove ID; its pending tasks end as dead, and what is claimed may still be settled."""
    from tape.core.errors import NotFound

    if not finish(partial(_call, choices, lambda node: node.reactions.remove(reaction_id))):
        raise NotFound(f"there is no reaction {reaction_id!r}")
    if choices.is_json:
        output.write_json({"reaction_id": reaction_id, "deregistered": True})
    else:
        output.write(f"{output.escape(reaction_id)}  removed")


async def _call(choices: Choices, ask: Callable[[AsyncNode], Awaitable[T]]) -> T:
    return await use_node(choices, ask, must_exist=True)


async def _all(node: AsyncNode, subject_pattern: str) -> list[ReactionRecord]:
    page = await node.reactions.list(subject_pattern)
    rows = [*page.rows]
    while page.next_cursor:
        page = await node.reactions.list(subject_pattern, cursor=page.next_cursor)
        rows += page.rows
    return rows


async def _get(node: AsyncNode, reaction_id: str) -> ReactionRecord:
    from tape.core.errors import NotFound

    try:
        return await node.reactions.get(reaction_id)
    except NotFound as error:
        raise NotFound(f"{error}; tape reaction ls lists those there are") from None


def _show(choices: Choices, record: ReactionRecord) -> None:
    facts = _facts(record)
    if choices.is_json:
        output.write_json(facts)
    else:
        write_facts({**facts, "handler_kind": record.reaction.handler_kind})


def _facts(record: ReactionRecord) -> dict[str, object]:
    """The columns of tape_reactions by name."""
    own = {
        "created_at_ms": record.created_at_ms,
        "deleted": record.is_removed,
        "paused": record.paused,
        "last_global_seq": record.cursor,
        "errors": record.errors,
        "last_error": record.last_error,
    }
    return {**record.reaction.definition(), **own}


def _line(record: ReactionRecord) -> tuple[str, ...]:
    state = output.paint("paused", "yellow") if record.paused else output.paint("active", "green")
    trouble = output.count(record.errors, "error", "errors") if record.errors else ""
    rule = record.reaction
    kind, place = _KINDS[rule.handler_kind], f"at {record.cursor:,}"
    return state, output.paint(output.escape(rule.reaction_id), "bold"), kind, place, rule.subject_pattern, trouble


reaction.add_command(backfill)
reaction.add_command(dry_run)
reaction.add_command(explain)
