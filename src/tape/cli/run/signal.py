"""`tape run signal`: send a signal to a gate of a run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared

if TYPE_CHECKING:
    from tape.core.codec import JsonValue
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

    sent = finish(partial(_send, choices, run_id, gate, codec.decode(resolution), key))
    if choices.is_json:
        from tape.wire.result_json import plain

        output.write_json(plain(sent))
    else:
        output.write(f"{output.escape(sent.run_id)}  {_describe(sent)}")


async def _send(choices: Choices, run_id: str, gate: str, resolution: JsonValue, key: str | None) -> SignalResult:
    async with choices.open_node(must_exist=True) as node:
        return await node.gates.send(run_id, gate, resolution, key=key)
    raise AssertionError("unreachable")


def _describe(sent: SignalResult) -> str:
    if not sent.is_accepted:
        return "has ended, and takes no answer"
    return "goes on" if sent.run_status is not None else "will find the answer when it comes to the gate"
