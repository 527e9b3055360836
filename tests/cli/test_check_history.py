"""`tape check-history`: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest

from tape.cli.main import run

RECORDED = Path(__file__).parents[1] / "checker" / "recorded.jsonl"


def ended(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run(["check-history", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def doctored(folder: Path) -> Path:
    """Without the reason why a stream ended."""
    lines = RECORDED.read_text().splitlines()
    path = folder / "doctored.jsonl"
    path.write_text("\n".join(line.replace('"reason":"the run is closed"', '"reason":""') for line in lines))
    return path


def test_a_sound_history_ends_with_0_and_shows_what_was_judged(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, RECORDED)

    assert (code, err) == (0, "")
    assert "P1   judged" in out and "P8   not judged" in out and "anomal" not in out


def test_an_anomaly_ends_with_8_and_names_its_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = ended(capsys, doctored(tmp_path))

    assert code == 8 and "P7   1 anomaly" in out and "P7: a stream of follower ended without a reason (lines " in out


def test_json_has_a_line_for_each_invariant(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = ended(capsys, doctored(tmp_path), "--json")

    rows = {row["invariant"]: row for row in map(json.loads, out.splitlines())}
    assert code == 8 and {*rows} == {f"P{number}" for number in range(1, 19)}
    assert rows["P7"]["anomalies"] == 1 and len(rows["P7"]["first"][0]["lines"]) == 2
    assert rows["P1"]["anomalies"] == 0 and rows["P1"]["judged"] > 0 and "latency" in rows["P8"]["not_judged"]


def test_an_empty_history_is_no_success(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()

    code, out, err = ended(capsys, tmp_path / "empty.jsonl")

    assert code == 2 and "nothing to judge" in err and out.count("nothing to judge") == 15


@pytest.mark.parametrize("line", ["{", '{"op":"nonsense","client":"c"}', '{"op":"entry","client":"c"}', "\x00"])
def test_a_malformed_line_is_a_usage_error_with_its_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str
) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text(RECORDED.read_text() + "\n" + line + "\n")
    number = len(path.read_text().splitlines())

    code, out, err = ended(capsys, path)

    assert (code, out) == (2, "") and f"line {number}: " in err and err.count("\n") == 1


def test_a_missing_file_is_a_usage_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = ended(capsys, tmp_path / "nowhere.jsonl")

    assert (code, out) == (2, "") and "nowhere.jsonl" in err
