"""`tape task`: look at tasks, and give the dead another chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, ask_node, shared
from tape.cli.noun_group import NounGroup

if TYPE_CHECKING:
    from tape.core.task import Task, TaskId, TaskStatus
    from tape.sdk.nouns.node import AsyncNode

MAX_ROWS: Final = 1_000
MAX_DEAD: Final = 1_000_000
MAX_REPLAYED: Final = 10_000
_STATUSES: Final = ("pending", "claimed", "done", "dlq")
_COLOURS: Final = {1: "yellow", 2: "cyan", 3: "green", 5: "red"}


@click.group(cls=NounGroup, no_args_is_help=False)
@shared
def task() -> None:
    """Look at tasks, and give the dead another chance."""


@task.command("ls")
@click.option("--reaction", "reaction_id", metavar="ID", default="", help="Only those of one reaction.")
@click.option("--status", type=click.Choice(_STATUSES), help="Only those of one status.")
@click.option("--limit", type=click.IntRange(1, MAX_ROWS), default=200, show_default=True, help="How many at most.")
@shared
@click.pass_obj
def list_tasks(choices: Choices, reaction_id: str, status: str | None, limit: int) -> None:
    """List tasks, the newest first."""
    from tape.core.task import TaskStatus

    wanted = None if status is None else TaskStatus[status.upper()]
    found = ask_node(choices, lambda node: _listed(node, reaction_id, wanted, limit))
    if choices.is_json:
        for each in found:
            output.write_record(each)
    else:
        output.listing(map(_line, found), "there is nothing of the kind; tape work MODULE makes tasks of what matches")


@task.command()
@click.argument("task_ids", metavar="[TASK]...", nargs=-1)
@click.option("--reaction", "reaction_id", metavar="ID", help="All dead tasks of one reaction.")
@click.option("--all", "is_all", is_flag=True, help="All dead tasks.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_DEAD), default=MAX_ROWS, show_default=True, help="How many at most."
)
@shared
@click.pass_obj
def replay(choices: Choices, task_ids: tuple[str, ...], reaction_id: str | None, is_all: bool, limit: int) -> None:
    """Make dead tasks pending again: the named ones, those of a reaction, or all."""
    if sum((bool(task_ids), bool(reaction_id), is_all)) != 1:
        raise click.UsageError("name tasks, or give --reaction, or --all")
    replayed = ask_node(choices, lambda node: _replay(node, task_ids, reaction_id or "", limit))
    if choices.is_json:
        output.write_json({"replayed": list(replayed)})
    else:
        output.write(f"{output.count(len(replayed), 'task', 'tasks')} replayed")


async def _listed(node: AsyncNode, reaction_id: str, status: TaskStatus | None, limit: int) -> list[Task]:
    """The newest tasks; an answer may have fewer, because it is bounded in bytes."""
    page = await node.tasks.list(reaction_id, status, limit=limit)
    rows = [*page.rows]
    while page.next_cursor and len(rows) < limit:
        page = await node.tasks.list(reaction_id, status, limit=limit - len(rows), cursor=page.next_cursor)
        rows += page.rows
    return rows


async def _check(node: AsyncNode, task_id: str) -> None:
    from tape.core.errors import NotFound

    try:
        await node.tasks.get(task_id)
    except NotFound as error:
        raise NotFound(f"{error}; tape task ls lists those there are") from None


async def _replay(node: AsyncNode, task_ids: tuple[str, ...], reaction_id: str, limit: int) -> list[TaskId]:
    for task_id in task_ids:
        await _check(node, task_id)
    if task_ids:
        return [*(await node.tasks.replay(task_ids))]
    replayed: list[TaskId] = []
    while len(replayed) < limit:
        some = await node.tasks.replay(reaction_id=reaction_id, limit=min(limit - len(replayed), MAX_REPLAYED))
        if not some:
            break
        replayed += some
    return replayed


def _line(task: Task) -> tuple[str, ...]:
    status = output.paint(task.status.name.lower(), _COLOURS[task.status])
    attempts = output.count(task.attempts, "attempt", "attempts")
    place = output.paint(task.task_id, "bold")
    return status, place, output.escape(task.reaction_id), attempts, output.escape(task.last_error or task.subject)
