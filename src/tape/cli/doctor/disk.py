"""`tape doctor`: free disk space of the journal and the lake."""

import shutil
from pathlib import Path
from typing import Final

from tape.cli.doctor.finding import Finding

MIB: Final = 1 << 20
GIB: Final = 1 << 30
LITTLE: Final = GIB
NEXT_TO_NOTHING: Final = 100 * MIB


def check_disk(subject: str, folder: Path) -> Finding:
    return disk_finding(subject, shutil.disk_usage(folder).free, str(folder))


def disk_finding(subject: str, free: int, place: str) -> Finding:
    """The finding for this many free bytes."""
    found = Finding(subject, f"{size(free)} free")
    if free >= LITTLE:
        return found
    fix = f"make room at '{place}', or move it: on a full disk nothing is appended, and nothing that was is lost"
    return found._replace(status="warn" if free >= NEXT_TO_NOTHING else "fail", fix=fix)


def size(count: float) -> str:
    """A number of bytes with a unit."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
