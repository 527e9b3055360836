"""`tape run signal`: send a signal to a gate of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, ask_node, shared

if TYPE_CHECKING:
    from tape.core.gate import SignalResult


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("gate", metavar="GATE")
@click.argument("resolution", metavar="[JSON]", default="null")
@click.option("--key", help="The same key again answers once.")
@shared
@click.pass_obj
def signal(choices: Choices, run_id: str, gate: str, resolution: str, key: str | None) -> None:
    """Answer JSON at GATE of RUN; if RUN waits there, it may go on."""
    from tape.core import codec

    answer = codec.decode(resolution)
    sent = ask_node(choices, lambda node: node.gates.send(run_id, gate, answer, key=key))
    if choices.is_json:
        output.write_record(sent)
    else:
        output.write(f"{output.escape(sent.run_id)}  {_describe(sent)}")


def _describe(sent: SignalResult) -> str:
    if not sent.is_accepted:
        return "has ended, and takes no answer"
    return "goes on" if sent.run_status is not None else "will find the answer when it comes to the gate"
