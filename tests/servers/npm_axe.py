"""axe-core as npm carries it: the rules of accessibility, fetched and checked once, into .browser."""

import subprocess
import tarfile
from pathlib import Path

from tests.servers.errors import ServerMissing
from tests.servers.npm_chromium import CACHE, environment, integrity, only_one, require_npm

VERSION = "4.14.0"
PACKAGE = f"axe-core@{VERSION}"
INTEGRITY = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
MEMBER = "package/axe.min.js"


def script(cache: Path = CACHE) -> Path:
    """Where it is, after it was brought there if need be; a second run waits for the first."""
    found = cache / f"axe-{VERSION}.js"
    if not found.exists():
        require_npm()
        with only_one(cache) as lock:
            if not found.exists():  # the run we waited for may have brought it
                bring(found, lock)
    return found


def bring(found: Path, lock: int) -> None:
    folder = found.with_name("axe-draft")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "pack", "--loglevel=error", "--ignore-scripts", "--pack-destination", folder, PACKAGE],
        cwd=folder, env=environment(folder), pass_fds=(lock,), capture_output=True, text=True, check=False,
    )  # fmt: skip
    packages = [package for package in folder.glob("*.tgz") if integrity(package) == INTEGRITY]
    if not packages:
        raise ServerMissing(f"npm could not fetch {PACKAGE}: {done.stderr.strip() or 'it brought another one'}")
    with tarfile.open(packages[0]) as parts:
        content = parts.extractfile(MEMBER)
        assert content is not None
        draft = folder / "axe.js"
        draft.write_bytes(content.read())
    draft.rename(found)
