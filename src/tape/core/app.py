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

MAX_NAME: Final = 64

_UNFIT: Final = re.compile("[^A-Za-z0-9_-]+")


def check_app(name: str) -> str:
    """Returns the name if it is valid; "" means any app."""
    if not isinstance(name, str) or not (name == ANY or is_id(name)):
        raise UsageError(f"an app has a name, {ID_IN_WORDS}, not {quoted(name)}")
    return name


def serves(app: str, owner: str) -> bool:
    """Whether a worker of `app` may take work that belongs to `owner`; ANY on either side matches."""
    return ANY in (app, owner) or app == owner


def main_module(main: ModuleType | None = None) -> str:
    """The name under which another program would import the module that this process runs.

    `python -m shop.worker` is `shop.worker`. Of `python shop/worker.py` only `worker` is known, because the command
    does not name the package.
    """
    found = sys.modules.get("__main__") if main is None else main
    spec = getattr(found, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(found, "__file__", None)
    return Path(file).stem if file else INTERACTIVE


def app_of(module: str) -> str:
    """The top-level package of a module, with "-" for each character that an app's name cannot have."""
    return _UNFIT.sub("-", module.partition(".")[0]).lstrip("_-")[:MAX_NAME] or INTERACTIVE
