from pathlib import Path

from tape.checker.lines import StoppedLine
from tests.process import recorder
from tests.process.recorder import Recorder


def test_a_line_that_a_kill_tore_is_cut_off_before_the_next_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "writer.jsonl"
    Recorder(path).write(StoppedLine)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])

    Recorder(path).write(StoppedLine)

    assert [line.client for line in recorder.read(path)] == ["writer", "writer"]
