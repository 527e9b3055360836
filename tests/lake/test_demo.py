"""The demo's last part: arena, journal, Spark, lake, page, and all of it compared."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tape.cli.demo import lake as demo_lake
from tape.cli.main import run


def test_the_demo_ends_with_a_lake_that_is_the_journal_and_a_page_of_it(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "--seconds", "2", "--folder", str(tmp_path), "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    kept = {check["name"]: check["finding"] for check in report["checks"] if check["is_kept"]}
    assert "entries equal to the byte" in kept["lake"] and "fork: ada -60, bo -2, cy -55" in kept["tables"]
    assert report["lake"]["page"] == str(tmp_path / "report.html")
    assert "What the forks changed" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "report").glob("*.png"))) == 6


def test_without_spark_the_demo_leaves_the_lake_out_and_prints_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_lake, "NEEDED", ("pyspark_that_is_not_installed",))

    assert run(["demo", "--seconds", "2", "--folder", str(tmp_path)]) == 0

    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("The lake is left out")]
    assert len(printed) == 1 and "tape-bus[spark]" in printed[0] and not (tmp_path / "lake").exists()
