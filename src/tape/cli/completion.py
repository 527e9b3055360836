"""`tape completion`: scripts that complete commands and options in a shell."""

from __future__ import annotations

import click

from tape.cli import output
from tape.cli.choices import shared

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@shared
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    Let the shell's start-up file evaluate it, in zsh behind compinit; in fish, pipe it to source.
    """
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"nothing is known of {shell}")
    output.write(script(context.find_root().command, {}, "tape", "_TAPE_COMPLETE").source().rstrip())
