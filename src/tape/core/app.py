"""The name of an app: what separates the work of several programs that share a store."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from tape.core.errors import UsageError, quoted
from tape.core.ids import ID_IN_WORDS, is_id

INTERACTIVE: Final = "main"
ANY: Final = ""

MOST: Final = 64

_UNFIT: Final = re.compile("[^A-Za-z0-9_-]+")
_run: list[str] = []


def check_app(name: str) -> str:
    """An app's name, or "" for any app."""
    if not isinstance(name, str) or not (name == ANY or is_id(name)):
        raise UsageError(f"an app has a name, {ID_IN_WORDS}, not {quoted(name)}")
    return name


def serves(app: str, owner: str) -> bool:
    """Whether a worker of an app may take work of another's; either may be any."""
    return ANY in (app, owner) or app == owner


def run_module(name: str) -> None:
    """Says which module this process runs, where a command of Tape runs it for its user."""
    _run[:] = [name]


def main_module(main: ModuleType | None = None) -> str:
    """The module that this process runs, as another program would import it.

    `python -m shop.worker` is `shop.worker`; of `python shop/worker.py` only `worker` is known, because nothing says
    where the package begins.
    """
    if main is None and _run:
        return _run[0]
    found = sys.modules.get("__main__") if main is None else main
    spec = getattr(found, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(found, "__file__", None)
    return Path(file).stem if file else INTERACTIVE


def app_of(module: str) -> str:
    """The app that a module belongs to: its top-level package, with - for what a name cannot have."""
    return _UNFIT.sub("-", module.partition(".")[0]).lstrip("_-")[:MOST] or INTERACTIVE
