"""A program's app: TAPE_APP, else the top-level package of its main module."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tape.core.app import app_of

TAPE = str(Path(sys.executable).with_name("tape"))
WORKER = "import os, tape.settings; print(tape.settings.Settings.read(os.environ).app)"
REFERENCE = """
from tape.sdk.durable.references import reference
def undo(): ...
print(reference(undo))
"""


@pytest.mark.parametrize(
    ("module", "app"),
    [
        ("shop", "shop"),
        ("shop.worker", "shop"),
        ("my worker", "my-worker"),
        ("_shop", "shop"),
        ("ü", "main"),
        ("", "main"),
    ],
)
def test_an_app_is_the_top_level_package_of_a_module(module: str, app: str) -> None:
    assert app_of(module) == app


def printed(folder: Path, *arguments: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A package with a worker, and a module that says which app it is in when it is loaded."""
    (tmp_path / "shop").mkdir()
    for name in ("shop/__init__.py", "shop/__main__.py", "shop/worker.py", "shop/handlers.py", "h.py"):
        (tmp_path / name).write_text("" if name.endswith("__init__.py") else WORKER + REFERENCE)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "app"),
    [
        (["-m", "shop.worker"], "shop"),
        (["-m", "shop"], "shop"),
        (["h.py"], "h"),
        (["-c", WORKER], "main"),
        ([TAPE, "work", "shop.handlers", "--once", "--store", "memory://"], "shop"),
    ],
)
def test_a_program_is_an_app_by_what_is_run(shop: Path, arguments: list[str], app: str) -> None:
    assert printed(shop, *arguments) == app


def test_the_app_that_is_set_wins(shop: Path) -> None:
    assert printed(shop, "-m", "shop.worker", TAPE_APP="till") == "till"


def test_a_function_of_the_program_itself_has_the_name_by_which_others_import_it(shop: Path) -> None:
    (shop / "shop" / "worker.py").write_text(REFERENCE)

    assert printed(shop, "-m", "shop.worker") == "shop.worker:undo"
