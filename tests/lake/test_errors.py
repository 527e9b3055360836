"""Errors of Spark and of the file system become Tape's errors."""

from pathlib import Path

import pytest

from tape.core.errors import Corrupt, UsageError
from tape.core.folder import check_delta_folder, local_folder
from tape.lake.errors import write_error

RAISED = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "partitions.py", line 7, in read
tape.core.errors.Corrupt: entry 30: it is missing
"""


def test_an_entry_that_a_worker_found_missing_is_named() -> None:
    error = write_error(RuntimeError(RAISED), "the step")

    assert isinstance(error, Corrupt) and (error.global_seq, error.reason) == (30, "it is missing")


@pytest.mark.parametrize("given", [" s3://bucket/lake", "\ts3:/bucket"])
def test_a_space_before_a_url_makes_no_folder_of_it(given: str) -> None:
    with pytest.raises(UsageError, match="s3:// is not supported"):
        local_folder(given, "a lake")


def test_a_name_that_is_too_long_for_the_file_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        check_delta_folder(tmp_path / ("x" * 500))
