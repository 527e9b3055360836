"""A disk that a test may fill up; only root can mount one, and not everywhere."""

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.account import Account

PIECES = (1 << 20, 4_096)


class SmallDisk:
    """A folder on a file system of its own; where none can be mounted it is an ordinary one, which is never full."""

    def __init__(self, folder: Path, is_mounted: bool) -> None:
        self.folder = folder
        self.is_mounted = is_mounted
        self._ballast = folder / "ballast"

    @contextmanager
    def full(self) -> Iterator[None]:
        """Within the block there is no room for a byte."""
        try:
            self._fill()
            yield
        finally:
            self._ballast.unlink(missing_ok=True)

    def _fill(self) -> None:
        with self._ballast.open("wb") as file:
            size = 0
            for piece in PIECES if self.is_mounted else ():
                while _has_grown(file.fileno(), size, piece):
                    size += piece


@contextmanager
def mounted_disk(size: int, account: Account) -> Iterator[SmallDisk]:
    """A disk of so many bytes that the account owns; it is unmounted with the block."""
    folder = Path(tempfile.mkdtemp(prefix="tape-disk-")).resolve()
    owner = f",uid={account.user},gid={account.group}" if account.user is not None else ""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700{owner}", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(command, check=False).returncode == 0
    account.give(folder)
    try:
        yield SmallDisk(folder, is_mounted)
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", folder], check=True)  # a JVM may still hold what it could not write
        subprocess.run(["rm", "-rf", folder], check=True)


def _has_grown(file: int, size: int, more: int) -> bool:
    try:
        os.posix_fallocate(file, size, more)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True
