"""Local folders named by users."""

import re
from pathlib import Path, PurePath

from tape.core.errors import UsageError, quoted

# pathlib turns two slashes into one, so `s3://bucket` may arrive as `s3:/bucket`.
_scheme = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):/").match
# delta-rs reads %20 in a path as a space, and a backslash as a slash; Hadoop reads no wildcard beside a colon.
_unreadable = re.compile(r"%[0-9A-Fa-f]{2}|[\\\x00-\x1f\x7f]|:(?=.*[*?{\[])|[*?{\[](?=.*:)").search


def local_folder(given: str | PurePath, what: str) -> Path:
    """The folder at a path; URLs are refused, because only local folders are supported."""
    found = _scheme(str(given))
    if found is not None:
        raise UsageError(
            f"{what} is a folder of this machine, given as a path; {found[1]}:// is not supported: {quoted(str(given))}"
        )
    return Path(given)


def check_delta_folder(folder: Path) -> Path:
    """Refuses a path that Delta or Spark would read as another one."""
    local_folder(folder, "a lake")
    try:
        path = str(folder.resolve())
        folder.exists()
    except OSError as error:
        raise UsageError(f"a lake cannot be in this folder ({error.strerror}): {quoted(str(folder))}") from error
    found = _unreadable(path)
    if found is not None:
        raise UsageError(f"a lake cannot be in a folder with {found[0]!r} in its path: {quoted(str(folder))}")
    return folder
