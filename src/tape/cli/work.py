"""`tape work`: run the handlers of a module."""

from __future__ import annotations

import os
from functools import partial

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.modules import load, search_current_folder
from tape.cli.serve import log_to_stderr


@click.command()
@click.argument("modules", metavar="MODULE...", nargs=-1)
@click.option("--slots", type=click.IntRange(1, 10_000), default=16, show_default=True, help="Tasks at a time.")
@click.option("--lease-ms", type=int, default=60_000, show_default=True, help="How long a task is ours unrenewed.")
@click.option("--owner", help="The name it claims under.  [default: one of its own]")
@click.option("--register/--no-register", "is_registering", default=True, help="Register its reactions first.")
@click.option("--once", is_flag=True, help="Only what is due now.")
@shared
@click.pass_obj
def work(
    choices: Choices,
    modules: tuple[str, ...],
    slots: int,
    lease_ms: int,
    owner: str | None,
    is_registering: bool,
    once: bool,
) -> None:
    """Load MODULE, register the reactions its decorators have collected, and run their handlers.

    Reactions that publish are worked off too, to the [connections] in the file of TAPE_CONFIG; that needs no module.
    The first signal lets what was begun come to its end, the second does not wait.
    """
    from datetime import timedelta

    from tape import compose
    from tape.matcher.dispatcher import config_of
    from tape.settings import Settings
    from tape.work.collected import collected

    if not modules and not Settings.read(os.environ).connections:
        raise click.UsageError("name a module with handlers, or connections to publish to in TAPE_CONFIG")
    search_current_folder(modules)
    if modules:
        os.environ.setdefault("TAPE_APP", Settings.read(os.environ, main=modules[0]).app)
    load(*modules)
    log_to_stderr()
    lease = timedelta(milliseconds=lease_ms)
    config = config_of(collected, is_registering=is_registering, owner=owner, slots=slots, lease=lease)
    handled = finish(partial(compose.dispatch, choices.location()[0], config, once))
    if choices.is_json:
        output.write_json({"handled": handled})
    else:
        output.write(f"{output.count(handled, 'task', 'tasks')} handled")
