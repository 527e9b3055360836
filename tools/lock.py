"""Resolves requirements/*.in into *.lock files with the hash of every public file."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)

# Wheels in a local folder have hashes that no other machine can download.
LOCAL_SOURCES = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}

EXTRAS = ("cel", "duckdb", "grpc", "kafka", "nats", "postgres", "pubsub", "redis", "sdk", "server", "spark", "webhook")
LOCKS = {"dev": EXTRAS, "bench": EXTRAS, "fuzz": ("cel", "sdk", "server")}

OPTIONS = [
    "--quiet",
    "--upgrade",
    "--allow-unsafe",
    "--generate-hashes",
    "--strip-extras",
    "--no-emit-find-links",
    "--no-emit-index-url",
    "--no-emit-options",
    "--no-emit-trusted-host",
]


def main() -> int:
    if sys.version_info[:2] != OLDEST:
        print("tape: lock with Python 3.11, the oldest one supported; newer ones need a part of what it needs")
        return 2
    for name in sys.argv[1:] or LOCKS:
        print(f"tape: resolving requirements/{name}.lock", flush=True)
        resolve(name)
    return 0


def resolve(name: str) -> None:
    target = f"requirements/{name}.lock"
    extras = [f"--extra={extra}" for extra in LOCKS[name]]
    command = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *extras, "--output-file", target]
    environment = {**os.environ, **LOCAL_SOURCES, "CUSTOM_COMPILE_COMMAND": "make lock"}
    subprocess.run([*command, "pyproject.toml", f"requirements/{name}.in"], cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
