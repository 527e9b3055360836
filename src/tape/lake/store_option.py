"""Which store a Spark option means, without the option saying a secret.

Options stand in plans, in Spark's pages and in its event logs. So a URL with a password is refused there; it is
written somewhere else, and the option says where.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from tape.core.errors import UsageError, quoted
from tape.settings import Settings
from tape.store.ranges import refused

ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
LASTING: Final = ("sqlite", "postgresql", "postgres")


def resolve(option: str | None, environment: Mapping[str, str]) -> str:
    """The URL of the store that an option means: that of TAPE_STORE, or the one it says, or where it can be read."""
    if option is None:
        return check_durable(Settings.read(environment).store)
    if option.startswith(ENVIRONMENT):
        return check_durable(_of_environment(option.removeprefix(ENVIRONMENT), environment))
    if option.startswith(FILE):
        return check_durable(_of_file(Path(option.removeprefix(FILE))))
    if has_password(option):
        raise UsageError(
            "a password in an option stands in Spark's plans and logs; say env:NAME or file:PATH instead, "
            "or leave the option out and set TAPE_STORE"
        )
    return check_durable(option)


def option_for(url: str) -> str:
    """An option that means this URL: itself, or a file with it that only its owner can read and that goes with us."""
    check_durable(url)
    if not has_password(url):
        return url
    folder = Path(tempfile.mkdtemp(prefix="tape-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "store"
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(url)
    return f"{FILE}{path}"


def has_password(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.password) or "password" in parse_qs(parts.query)


def check_durable(url: str) -> str:
    """Refuses a store that forgets."""
    scheme = urlsplit(url).scheme
    if scheme not in LASTING:
        raise refused(scheme)
    return url


def _of_environment(name: str, environment: Mapping[str, str]) -> str:
    if not environment.get(name):
        raise UsageError(f"the store is said to be in the variable {quoted(name)}, which is not set where Spark plans")
    return environment[name]


def _of_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"the store is said to be in a file that cannot be read: {error}") from error
