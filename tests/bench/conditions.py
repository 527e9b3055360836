"""The conditions that every row is stored with."""

import os
import platform
import sqlite3
from datetime import UTC, datetime

from tests.bench import loop


def now() -> dict[str, object]:
    return {
        "measured at": datetime.now(UTC).isoformat(timespec="seconds"),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "loop": loop.NAME,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "machine": platform.machine(),
    }
