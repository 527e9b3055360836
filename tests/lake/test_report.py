"""The report shows the tables, and hostile text in them stays text."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tape.core.errors import NotFound
from tape.lake import derived_tables
from tape.lake.reports import drawing, report
from tests.lake.sample_tables import HOSTILE, status, tables

NAMES = ["temperatures", "events", "timeline", "models", "tools", "latencies", "budgets", "prosperity"]


def plots(minutes: int = 30) -> dict[str, drawing.Plot]:
    return {plot.name: plot for plot in report.plots_of(tables(minutes), status())}


def test_every_table_with_rows_is_drawn() -> None:
    assert list(plots()) == NAMES


def test_an_empty_lake_is_drawn() -> None:
    empty = dict.fromkeys(tables(), ())

    (plot,) = report.plots_of(empty, status(0, 1, 0))

    assert plot.name == "temperatures" and "nothing" in plot.about
    assert "<svg" in report.html(empty, status(0, 1, 0), [plot])


@pytest.mark.parametrize("name", NAMES)
def test_a_plot_has_a_description_and_is_drawn_as_svg_and_png(name: str) -> None:
    plot = plots()[name]

    tree = ElementTree.fromstring(drawing.svg(plot))

    assert tree.get("aria-label") == plot.about != ""
    assert drawing.png(plot).startswith(b"\x89PNG")


def test_models_are_added_up_over_runs_and_tools_that_never_answered_are_left_out() -> None:
    about = {name: plot.about for name, plot in plots().items()}

    assert about["models"] == f"{HOSTILE}: $2.0000, 110 tokens"
    assert about["tools"] == "gather: 3 of 4 succeeded"
    assert about["latencies"] == f"{HOSTILE}: p50 40 ms, 3 of 4 confirmed"
    assert about["budgets"] == f"{HOSTILE}: $1.0000 of $0.5000; arena: $1.0000 of $2.0000"
    assert about["prosperity"] == "ada: 86 became 74 after turn 6"
    assert about["timeline"] == "3 runs, 1 of them forks"
    assert about["temperatures"] == "cold: 1 – 900; warm: 501 – 1,000; hot: 901 – 1,000"


def test_a_journal_of_a_few_minutes_is_drawn_by_type_alone() -> None:
    assert plots(minutes=2)["events"].title == "Events by type"
    assert plots(minutes=4)["events"].title == "Events per minute, by type"


def test_weeks_are_drawn_in_bars_that_can_be_seen() -> None:
    weeks = [{"minute_ms": day * 86_400_000, "kind": "event", "type": "x", "n_events": 1_440} for day in range(40)]

    (_, plot) = report.plots_of(dict.fromkeys(tables(), ()) | {"types_per_minute": weeks}, status())

    bars = drawing.svg(plot).count("a minute at")
    assert 30 <= bars <= 180


def test_a_plot_names_its_colours_and_has_no_external_references() -> None:
    page = report.html(tables(), status(), list(plots().values()))

    drawn = page[page.index("<main>") :]
    assert "var(--accent)" in drawn and "fill: #3b6fb6" not in drawn
    assert "src=" not in page and "@import" not in page and "url(http" not in page
    assert report.POLICY in page and "<script" not in page


def test_a_page_and_its_pictures_are_written_from_the_tables_on_disk(tmp_path: Path) -> None:
    for name, rows in tables().items():
        write_deltalake(str(derived_tables.folder_of(tmp_path, name)), pa.Table.from_pylist(rows))
        as_of(derived_tables.folder_of(tmp_path, name), 900)

    pictures = report.write_report(tmp_path, status(), tmp_path / "out.html")

    assert [picture.name for picture in pictures] == [f"{name}.png" for name in NAMES]
    assert {path.name for path in tmp_path.glob("out*")} == {"out.html", "out"} and not list(tmp_path.glob(".out*"))
    assert "$2.0000" in (tmp_path / "out.html").read_text(encoding="utf-8")


def test_a_report_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="tape lake tables makes it"):
        report.write_report(tmp_path, status(), tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


def as_of(folder: Path, position: int) -> None:
    """Commits a position to a table that was written without one."""
    from deltalake import CommitProperties, Transaction

    table = DeltaTable(folder)
    properties = CommitProperties(app_transactions=[Transaction("tape", position)])
    table.create_write_transaction([], "append", table.schema(), commit_properties=properties)
