"""The report: one self-contained HTML page, and its plots as PNG files."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import uuid4

from tape.core.errors import UsageError
from tape.lake.derived_tables import NAMES, rows_of
from tape.lake.reports.task_outcomes import NAME as OUTCOMES, outcomes_of

if TYPE_CHECKING:
    from tape.core.lake import LakeStatus
    from tape.lake.reports.drawing import Plot

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
MOST_ROWS: Final = 30
MOST_REASONS: Final = 12
DECIDED: Final = ("decisions", "effects", "confirmed", "failed")
FORK_HEADING: Final = ("fork", "of", "after #", "changed", "agent", "turn #", "parent #", "fork #", "difference #")
FORK_COLUMNS: Final = "run_id parent_run_id at_seq mutation_json agent turn_num parent_value value difference".split()
REACTION_HEADING: Final = ("reaction", "subjects", "predicate", "status", "pauses #", "dead #", "replayed #")
REACTION_COLUMNS: Final = "reaction_id subject_pattern predicate_cel status n_pauses n_dead n_replayed".split()
OUTCOME_HEADING: Final = ("reaction", "status", "tasks #", "attempts #", "coalesced #", "mean ms #", "longest ms #")
OUTCOME_COLUMNS: Final = "reaction_id status n_tasks n_attempts n_coalesced mean_ms max_ms".split()

Tables: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]


def check_drawable() -> None:
    if find_spec("matplotlib") is None:
        raise UsageError("a report needs the package matplotlib; install tape-bus[spark]")


def write_report(lake: Path, status: LakeStatus, page: Path) -> list[Path]:
    """Writes the page atomically and a folder of PNGs named after it; returns their paths."""
    from tape.lake.reports.drawing import write_png

    tables = {**{name: rows_of(lake, name) for name in NAMES}, OUTCOMES: outcomes_of(lake)}
    plots = list(plots_of(tables, status))
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    new = page.with_name(f".{page.name}.{uuid4().hex[:8]}")
    new.write_text(html(tables, status, plots), encoding="utf-8")
    shutil.move(new, page)
    return [write_png(plot, folder) for plot in plots]


def plots_of(tables: Tables, status: LakeStatus) -> Iterator[Plot]:
    """The plots of the tables; a table without rows has none."""
    from tape.lake.reports import ledgers as plots_ledgers, timing as plots_time, usage as plots_usage

    yield plots_time.temperatures(status)
    if tables["types_per_minute"]:
        yield plots_time.events(tables["types_per_minute"])
    if any(row["status"] != "system" for row in tables["runs"]):
        yield plots_time.timeline(tables["runs"], tables["forks"])
    if tables["model_usage"]:
        yield plots_usage.models(tables["model_usage"])
    if any(row["n_ok"] + row["n_failed"] for row in tables["tool_usage"]):
        yield plots_usage.tools(tables["tool_usage"])
    if any(row["p50_ms"] is not None for row in tables["effect_latencies"]):
        yield plots_ledgers.latencies(tables["effect_latencies"])
    if any(row["usd_cap"] for row in tables["budgets"]):
        yield plots_ledgers.budgets(tables["budgets"])
    if any(row["name"] == plots_usage.PROSPERITY for row in tables["metrics"]):
        yield plots_usage.prosperity(tables["metrics"], tables["forks"])


def html(tables: Tables, status: LakeStatus, plots: Sequence[Plot]) -> str:
    sections = [
        *map(_section, plots),
        *_table("What the forks changed", FORK_HEADING, FORK_COLUMNS, tables["forks"]),
        *_decisions(tables["decisions"]),
        *_table("Reactions", REACTION_HEADING, REACTION_COLUMNS, tables["reactions"]),
        *_table("Task outcomes", OUTCOME_HEADING, OUTCOME_COLUMNS, tables.get(OUTCOMES, ())),
        *_quarantine(tables["quarantine"]),
    ]
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width"><title>Tape: the lake</title>',
            f"<style>{_colours()}\n{_style()}</style></head><body>",
            f"<header><h1>The lake</h1><p>{_headline(tables, status)}</p></header>",
            f"<dl>{''.join(_figure(name, value) for name, value in _figures(tables, status))}</dl>",
            f"<main>{''.join(sections)}</main>",
            "<footer>Drawn by tape lake report. Times are UTC. Point at a mark to read it.</footer></body></html>",
        ]
    )


def _headline(tables: Tables, status: LakeStatus) -> str:
    times = [row["last_ts_ms"] for row in tables["runs"]]
    until = f", until {datetime.fromtimestamp(max(times) / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if times else ""
    return f"Entries up to position {status.cold.head:,}{until}"


def _figures(tables: Tables, status: LakeStatus) -> Iterator[tuple[str, str]]:
    results = sum(row["n_ok"] + row["n_failed"] for row in tables["tool_usage"])
    yield "entries", f"{status.cold.head:,}"
    yield "runs", f"{sum(row['status'] != 'system' for row in tables['runs']):,}"
    yield "forks", f"{sum(row['parent_run_id'] is not None for row in tables['runs']):,}"
    if tables["model_usage"]:
        yield "spent on models", f"${sum(row['cost_usd'] for row in tables['model_usage']):,.4f}"
    if results:
        yield "tools succeeded", f"{sum(row['n_ok'] for row in tables['tool_usage']) / results:.0%}"
    yield "in quarantine", f"{len(tables['quarantine']):,}"


def _figure(name: str, value: str) -> str:
    return f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def _section(plot: Plot) -> str:
    from tape.lake.reports.drawing import HALF, svg

    half = ' class="half"' if plot.size[0] == HALF else ""
    return f"<section{half}><h2>{escape(plot.title)}</h2>{svg(plot)}</section>"


def _table(
    title: str, heading: Sequence[str], columns: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The first rows of a table, unless it is empty."""
    if rows:
        lines = [_row(*(row[column] for column in columns)) for row in rows[:MOST_ROWS]]
        more = f"<p>and {len(rows) - MOST_ROWS:,} more</p>" if len(rows) > MOST_ROWS else ""
        yield f"<section><h2>{title}</h2><table>{_heading(*heading)}{''.join(lines)}</table>{more}</section>"


def _decisions(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table of models with their decisions and effects."""
    if not rows:
        return
    models: dict[str, Counter[str]] = {}
    for row in rows:
        counts = models.setdefault(row["model"], Counter())
        counts.update({"decisions": 1, **{name: row[f"n_{name}"] for name in ("effects", "confirmed", "failed")}})
        counts.update(dict.fromkeys(filter(None, row["tools"].split(", ")), 0))
    heading = _heading("model", "decisions #", "effects #", "confirmed #", "failed #", "tools")
    most = sorted(models.items(), key=lambda each: -each[1]["decisions"])[:MOST_REASONS]
    lines = [_row(model, *(counts[name] for name in DECIDED), _tools(counts)) for model, counts in most]
    yield f"<section><h2>Decisions by model</h2><table>{heading}{''.join(lines)}</table></section>"


def _tools(counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(set(counts) - set(DECIDED)))


def _quarantine(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table of rejected entries by reason."""
    if not rows:
        return
    reasons: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        reasons.setdefault((row["table"], row["reason"]), []).append(row["global_seq"])
    most = sorted(reasons.items(), key=lambda each: -len(each[1]))[:MOST_REASONS]
    lines = [_row(table, reason, len(places), min(places)) for (table, reason), places in most]
    heading = _heading("table", "reason", "entries #", "first at #")
    yield f"<section><h2>In quarantine</h2><table>{heading}{''.join(lines)}</table></section>"


def _heading(*names: str) -> str:
    """The header row; a name that ends with # is a numeric column."""
    cells = (f'<th class="number">{name[:-2]}</th>' if name.endswith("#") else f"<th>{name}</th>" for name in names)
    return f"<tr>{''.join(cells)}</tr>"


def _row(*values: object) -> str:
    return f"<tr>{''.join(map(_cell, values))}</tr>"


def _cell(value: object) -> str:
    match value:
        case None:
            return "<td></td>"
        case int() | float():
            return (
                f'<td class="number">{value:,.6g}</td>'
                if isinstance(value, float)
                else f'<td class="number">{value:,}</td>'
            )
        case _:
            return f"<td>{escape(str(value))}</td>"


def _colours() -> str:
    """The colours that plots name, for light and dark."""
    from tape.lake.reports.drawing import DARK, LIGHT

    pairs = (f"--{name}: light-dark({colour}, {DARK[name]});" for name, colour in LIGHT.items())
    return f":root {{ {' '.join(pairs)} }}"


def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")
