"""`tape task`: look at tasks, and give the dead another chance."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.doctor.facts import write_facts

if TYPE_CHECKING:
    from tape.core.ports import Store
    from tape.core.task import Task, TaskId

MAX_ROWS: Final = 1_000
MAX_DEAD: Final = 1_000_000
_STATUSES: Final = {"pending": 1, "claimed": 2, "done": 3, "dlq": 5}
_COLOURS: Final = {1: "yellow", 2: "cyan", 3: "green", 5: "red"}


@click.group(no_args_is_help=False)
@shared
def task() -> None:
    """Look at tasks, and give the dead another chance."""


@task.command("ls")
@click.option("--reaction", "reaction_id", metavar="ID", default="", help="Only those of one reaction.")
@click.option("--status", type=click.Choice(list(_STATUSES)), help="Only those of one status.")
@click.option("--limit", type=click.IntRange(1, MAX_ROWS), default=200, show_default=True, help="How many at most.")
@shared
@click.pass_obj
def list_tasks(choices: Choices, reaction_id: str, status: str | None, limit: int) -> None:
    """List tasks, the newest first."""
    found = finish(partial(_listed, choices, reaction_id, _STATUSES.get(status or "", 0), limit))
    if choices.is_json:
        for each in found:
            output.write_json(_facts(each))
    else:
        output.listing(map(_line, found), "there is nothing of the kind; tape work MODULE makes tasks of what matches")


@task.command()
@click.argument("task_id", metavar="TASK")
@shared
@click.pass_obj
def show(choices: Choices, task_id: str) -> None:
    """Show all that is known of TASK."""
    found = finish(partial(_find, choices, task_id))
    if choices.is_json:
        output.write_json(_facts(found))
    else:
        write_facts({**_facts(found), "status": found.status})


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
    replayed = finish(partial(_replay, choices, task_ids, reaction_id or "", limit))
    if choices.is_json:
        output.write_json({"replayed": list(replayed)})
    else:
        output.write(f"{output.count(len(replayed), 'task', 'tasks')} replayed")


async def _listed(choices: Choices, reaction_id: str, status: int, limit: int) -> list[Task]:
    async with choices.open_store(must_exist=True) as store:
        return list(await store.tasks.listed(reaction_id=reaction_id, status=status, limit=limit))
    raise AssertionError("unreachable")


async def _find(choices: Choices, task_id: str) -> Task:
    async with choices.open_store(must_exist=True) as store:
        return await _found(store, task_id)
    raise AssertionError("unreachable")


async def _found(store: Store, task_id: str) -> Task:
    from tape.core.errors import NotFound
    from tape.core.task import TaskId

    found = await store.tasks.find(TaskId(task_id))
    if found is None:
        raise NotFound(f"there is no task {task_id!r}; tape task ls lists those there are")
    return found


async def _replay(choices: Choices, task_ids: tuple[str, ...], reaction_id: str, limit: int) -> list[TaskId]:
    async with choices.open_store(must_exist=True) as store:
        named = [(await _found(store, task_id)).task_id for task_id in task_ids]
        named = named or list(await store.tasks.dead(reaction_id, limit))
        return list(await store.tasks.replay(named))
    raise AssertionError("unreachable")


def _facts(task: Task) -> dict[str, object]:
    """The columns of tape_tasks by name."""
    from dataclasses import asdict

    return {**asdict(task), "status": int(task.status)}


def _line(task: Task) -> tuple[str, ...]:
    status = output.paint(task.status.name.lower(), _COLOURS[task.status])
    attempts = output.count(task.attempts, "attempt", "attempts")
    place = output.paint(task.task_id, "bold")
    return status, place, output.escape(task.reaction_id), attempts, output.escape(task.last_error or task.subject)
