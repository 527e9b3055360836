"""A group of commands about one noun, with a command for each of its operations that has none of its own."""

from __future__ import annotations

from typing import Final

import click

from tape.cli.choices import shared

ABOUT: Final = {
    "decision": "What models decided in runs.",
    "effect": "What runs do to the world outside, and what became of it.",
    "obligation": "What failed runs have to undo.",
    "gate": "Where runs wait for an answer.",
    "timer": "What runs have to do at a time.",
    "budget": "What a run may spend, and has spent.",
    "session": "The conversations of users with an app.",
}


class NounGroup(click.Group):
    """Adds the derived commands when they are asked for, because the operations take long to import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._derive()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self._derive()
        return super().get_command(ctx, cmd_name)

    def _derive(self) -> None:
        from tape.cli.derived import add_operations

        add_operations(self, str(self.name))


def group_of(noun: str) -> click.Group:
    """The commands of a noun that has derived ones only."""
    return shared(NounGroup(noun, help=ABOUT[noun], no_args_is_help=False))
