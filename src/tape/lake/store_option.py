"""The store that a Spark option names, without a secret in the option.

Options appear in plans, in Spark's web pages and in its event logs. So a URL with a password is refused there; the
option names an environment variable or a file that holds it.
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
DURABLE: Final = ("sqlite", "postgresql", "postgres")


def resolve(option: str | None, environment: Mapping[str, str]) -> str:
    """The URL of a store: from TAPE_STORE without an option, else the option, or from the variable or file it names."""
    if option is None:
        return check_durable(Settings.read(environment).store)
    if option.startswith(ENVIRONMENT):
        return check_durable(_of_environment(option.removeprefix(ENVIRONMENT), environment))
    if option.startswith(FILE):
        return check_durable(_of_file(Path(option.removeprefix(FILE))))
    if has_password(option):
        raise UsageError(
            "a password in an option appears in Spark's plans and logs; use env:NAME or file:PATH instead, "
            "or leave the option out and set TAPE_STORE"
        )
    return check_durable(option)


def option_for(url: str) -> str:
    """An option that names this URL: the URL itself, or a file that only its owner can read, deleted at exit."""
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
    """Returns the URL; raises UsageError for a store that does not keep the whole history."""
    scheme = urlsplit(url).scheme
    if scheme not in DURABLE:
        raise refused(scheme)
    return url


def _of_environment(name: str, environment: Mapping[str, str]) -> str:
    if not environment.get(name):
        raise UsageError(f"the option store names the variable {quoted(name)}, which is not set where Spark plans")
    return environment[name]


def _of_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"the option store names a file that cannot be read: {error}") from error
