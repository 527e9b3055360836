"""The name of an app: what separates the work of several programs that share a store."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Final

INTERACTIVE: Final = "__main__"


def main_module(main: ModuleType | None = None) -> str:
    """The module that this process runs, as another program would import it.

    `python -m shop.worker` and `python shop/worker.py` differ, because only the first says where the package begins.
    """
    found = sys.modules.get("__main__") if main is None else main
    spec = getattr(found, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(found, "__file__", None)
    return Path(file).stem if file else INTERACTIVE


def app_of(module: str) -> str:
    """The app that a module belongs to: its top-level package."""
    return module.partition(".")[0]
