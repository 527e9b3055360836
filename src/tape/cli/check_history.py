"""`tape check-history`: whether a recorded history contradicts an invariant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, shared

if TYPE_CHECKING:
    from tape.checker.invariant_result import InvariantResult

MOST: Final = 20  # anomalies of one invariant that are printed


@click.command("check-history")
@click.argument("file", type=click.Path(path_type=Path))
@shared
@click.pass_obj
def check_history(choices: Choices, file: Path) -> int:
    """Check a history of client operations, a FILE of JSON lines, for contradictions.

    Ends with 0 when there are none, with 8 when there are, and with 2 when there is nothing to judge.
    """
    from tape.checker.check import check
    from tape.core.errors import Corrupt, UsageError

    if not file.is_file():
        raise UsageError(f"there is no file {output.escape(str(file))}")
    found = check(file)
    _write_json(found) if choices.is_json else _write(found)
    if not any(each.judged for each in found.values()):
        raise UsageError(f"there is nothing to judge in {output.escape(str(file))}")
    return Corrupt.exit_code if any(each.anomalies for each in found.values()) else 0


def _write(found: dict[str, InvariantResult]) -> None:
    from tape.checker.check import JUDGES, NOT_JUDGED

    rows = [(invariant, _result(each), JUDGES[invariant][0]) for invariant, each in found.items()]
    rows += [(invariant, "not judged", why) for invariant, why in NOT_JUDGED.items()]
    output.table(sorted(rows, key=lambda row: int(row[0][1:])))
    for invariant, each in found.items():
        for anomaly in each.anomalies[:MOST]:
            lines = ", ".join(map(str, anomaly.lines))
            output.write(f"{invariant}: {output.escape(anomaly.sentence)} (lines {lines})")
        if len(each.anomalies) > MOST:
            output.write(f"{invariant}: and {len(each.anomalies) - MOST:,} more")


def _result(found: InvariantResult) -> str:
    if found.anomalies:
        return output.count(len(found.anomalies), "anomaly", "anomalies")
    return f"judged {found.judged:,}" if found.judged else "nothing to judge"


def _write_json(found: dict[str, InvariantResult]) -> None:
    from tape.checker.check import NOT_JUDGED

    for invariant, each in found.items():
        anomalies = [{"sentence": one.sentence, "lines": one.lines} for one in each.anomalies[:MOST]]
        row = {"invariant": invariant, "judged": each.judged, "anomalies": len(each.anomalies), "first": anomalies}
        output.write_json(row)
    for invariant, why in NOT_JUDGED.items():
        output.write_json({"invariant": invariant, "judged": 0, "not_judged": why})
