"""`tape outbox contracts`: whether events only promise more than they did."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, shared
from tape.cli.modules import load as load_modules

if TYPE_CHECKING:
    from tape.outbox.contracts import Contract

SNAPSHOTS: Final = "contracts"
_ADVICE: Final = {
    "new": "record it with --update",
    "added": "record it with --update",
    "uncounted": "raise its version",
    "broken": "publish it as a new event type, and keep this one until nobody needs it",
    "gone": "keep it, or delete its snapshot when its deadline has passed",
}

_MODULES = click.argument("modules", metavar="MODULE...", nargs=-1, required=True)


@click.group(no_args_is_help=False)
@shared
def contracts() -> None:
    """Check what events promise, and print it."""


@contracts.command()
@_MODULES
@click.option("--snapshots", type=click.Path(path_type=Path), default=SNAPSHOTS, show_default=True, help="The record.")
@click.option("--update", is_flag=True, help="Record what is new or only adds; a break is never recorded.")
@shared
@click.pass_obj
def check(choices: Choices, modules: tuple[str, ...], snapshots: Path, update: bool) -> int:
    """Compare the contracts of modules with their snapshots; ends with 1 unless all is as recorded."""
    from tape.outbox.contracts import Snapshots, Standing

    found, record = _loaded(modules), Snapshots(snapshots)
    verdicts = {verdict.event_type: verdict for verdict in record.check(found)}
    for contract in found if update else ():
        if verdicts[contract.event_type].is_recordable:
            record.record(contract)
            verdicts[contract.event_type] = verdicts[contract.event_type]._replace(standing=Standing.SAME, reasons=())
    for verdict in verdicts.values():
        _say(choices, verdict.event_type, verdict.standing.value, verdict.reasons)
    return int(any(verdict.standing is not Standing.SAME for verdict in verdicts.values()))


@contracts.command()
@_MODULES
@click.option("--output", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file instead.")
@click.option("--check", "is_checking", is_flag=True, help="With --output: end with 1 if the file says otherwise.")
@shared
def catalog(modules: tuple[str, ...], path: Path | None, is_checking: bool) -> int:
    """Print the contracts of modules as a page of Markdown."""
    from tape.outbox.contracts import catalog as page

    text = page(_loaded(modules))
    if path is None:
        output.write(text.rstrip("\n"))
    elif is_checking:
        return int(not path.exists() or path.read_text(encoding="utf-8") != text)
    else:
        path.write_text(text, encoding="utf-8")
    return 0


def _loaded(modules: tuple[str, ...]) -> list[Contract]:
    from tape.outbox.contracts import load

    sys.path.insert(0, str(Path.cwd()))
    load_modules(*modules)
    return load(modules)


def _say(choices: Choices, event_type: str, standing: str, reasons: tuple[str, ...]) -> None:
    if choices.is_json:
        output.write_json({"event_type": event_type, "standing": standing, "reasons": list(reasons)})
        return
    colour = "green" if standing == "same" else "red"
    advice = f"; {_ADVICE[standing]}" if standing in _ADVICE else ""
    output.write(
        f"{output.paint(standing, colour)}  {output.escape(event_type)}  {', '.join(reasons)}{advice}".rstrip()
    )
