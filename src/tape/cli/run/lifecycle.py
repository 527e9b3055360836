"""`tape run open`: opens a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared

if TYPE_CHECKING:
    from tape.core.errors import NotFound
    from tape.operations.operation import OperationRequest

R = TypeVar("R")


@click.command("open")
@click.argument("run_id", metavar="[RUN]", default="")
@click.option("--label", metavar="TEXT", help="What lists call it.")
@click.option("--app", metavar="NAME", help="The app that it belongs to.")
@click.option("--user", metavar="NAME", help="Its user.")
@click.option("--session", metavar="NAME", help="Its session.")
@shared
@click.pass_obj
def open_run(
    choices: Choices, run_id: str, label: str | None, app: str | None, user: str | None, session: str | None
) -> None:
    """Open RUN, or a closed one again; without a name it gets one."""
    from tape.operations.journal_runs import OpenRun

    request = OpenRun(run_id=run_id, label=label, app=app, user=user, session=session)
    opened = finish(partial(call, choices, request, must_exist=False))
    if choices.is_json:
        output.write_json({"run_id": opened.run_id, "epoch": opened.epoch})
    else:
        output.write(f"{output.paint(opened.run_id, 'bold')}  open")


async def call(choices: Choices, request: OperationRequest[R], *, must_exist: bool = True) -> R:
    """Runs an operation on runs; a run that does not exist is an error that says how to find those that do."""
    from tape.core.errors import RunNotFound

    async with choices.open_operations(must_exist=must_exist) as operations:
        try:
            return await operations.call(request)
        except RunNotFound as error:
            raise unknown_run(error.run_id) from error
    raise AssertionError("unreachable")


def unknown_run(run_id: str) -> NotFound:
    from tape.core.errors import NotFound

    return NotFound(f"there is no run {run_id!r}; tape run ls lists those there are")
