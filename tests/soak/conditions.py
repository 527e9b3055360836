"""The machine on which a suite ran, as a reader of its report has to know it."""

import os
import platform
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import psutil

from tests.servers import binaries

ROOT = Path(__file__).resolve().parents[2]


def conditions() -> dict[str, str]:
    return {
        "commit": commit(),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total >> 30} GiB",
        "temporary files": file_system(tempfile.gettempdir()),
        "SQLite": sqlite3.sqlite_version,
        "PostgreSQL": str(binaries.version(binaries.postgres())),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def commit() -> str:
    """The commit of this repository, and whether files differ from it."""
    shown = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return shown.stdout.strip() or "unknown"


def file_system(folder: str) -> str:
    """The kind of file system of a folder."""
    mounts = [mount for mount in psutil.disk_partitions(all=True) if Path(folder).is_relative_to(mount.mountpoint)]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else "unknown"
