"""What `tape doctor` says of room: how much is left where the journal and the lake are."""

import shutil
from pathlib import Path
from typing import Final

from tape.cli.doctor.finding import Finding

MIB: Final = 1 << 20
GIB: Final = 1 << 30
LITTLE: Final = GIB
NEXT_TO_NOTHING: Final = 100 * MIB


def look_at_disk(subject: str, folder: Path) -> Finding:
    return judged_disk(subject, shutil.disk_usage(folder).free, str(folder))


def judged_disk(subject: str, free: int, place: str) -> Finding:
    """How so many free bytes are to be taken."""
    found = Finding(subject, f"{size(free)} free")
    if free >= LITTLE:
        return found
    fix = f"make room at '{place}', or move it: on a full disk nothing is appended, and nothing that was is lost"
    return found._replace(status="warn" if free >= NEXT_TO_NOTHING else "fail", fix=fix)


def size(count: float) -> str:
    """So many bytes, in a unit that suits them."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"
