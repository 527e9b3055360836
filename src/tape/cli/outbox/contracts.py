"""`tape outbox contracts`: compares event schemas with their recorded snapshots."""

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
    "broken": "publish it as a new event type, and keep this one until no consumer needs it",
    "gone": "keep it, or delete its snapshot when its deadline has passed",
}

_MODULES = click.argument("modules", metavar="MODULE...", nargs=-1, required=True)


@click.group(no_args_is_help=False)
@shared
def contracts() -> None:
    """Check the schemas of events, and print them."""


@contracts.command()
@_MODULES
@click.option(
    "--snapshots",
    type=click.Path(path_type=Path),
    default=SNAPSHOTS,
    show_default=True,
    help="The folder of the snapshots.",
)
@click.option(
    "--update", is_flag=True, help="Record new and compatible contracts; a breaking change is never recorded."
)
@shared
@click.pass_obj
def check(choices: Choices, modules: tuple[str, ...], snapshots: Path, update: bool) -> int:
    """Compare the contracts of modules with their snapshots; exits with 1 unless all are equal."""
    from tape.outbox.contracts import ContractStatus, Snapshots

    found, record = _loaded(modules), Snapshots(snapshots)
    checks = {check.event_type: check for check in record.check(found)}
    for contract in found if update else ():
        if checks[contract.event_type].is_recordable:
            record.record(contract)
            checks[contract.event_type] = checks[contract.event_type]._replace(status=ContractStatus.SAME, reasons=())
    for check in checks.values():
        _print(choices, check.event_type, check.status.value, check.reasons)
    return int(any(check.status is not ContractStatus.SAME for check in checks.values()))


@contracts.command()
@_MODULES
@click.option("--output", "path", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file instead.")
@click.option("--check", "is_checking", is_flag=True, help="With --output: exit with 1 if the file differs.")
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


def _print(choices: Choices, event_type: str, status: str, reasons: tuple[str, ...]) -> None:
    if choices.is_json:
        output.write_json({"event_type": event_type, "standing": status, "reasons": list(reasons)})
        return
    colour = "green" if status == "same" else "red"
    advice = f"; {_ADVICE[status]}" if status in _ADVICE else ""
    output.write(f"{output.paint(status, colour)}  {output.escape(event_type)}  {', '.join(reasons)}{advice}".rstrip())
