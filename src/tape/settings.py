"""What the environment and the file it names say, read once and checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tape.core.errors import UsageError, shown

PREFIX: Final = "TAPE_"
TEST_PREFIX: Final = "TAPE_TEST_"
NAMES: Final = frozenset(
    "allowed_origins broker_backend config connections data generation grpc http lake listen_url outbox_url "
    "spark_master store unsafe_durability url".split()
)
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where Tape lives; a URL chooses a backend."""

    data: Path
    store: str
    listen_url: str | None
    unsafe_durability: bool

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """The settings of an environment, over those of the file it names; a name nobody reads is a typing mistake."""
        said = _of_environment(environment)
        given = {**_of_file(said.get("config")), **said}
        data = Path(str(given.get("data") or ".tape"))
        return cls(
            data=data,
            store=str(given.get("store") or f"sqlite:///{quote(str(data / 'tape.db'))}"),
            listen_url=str(given["listen_url"]) if given.get("listen_url") else None,
            unsafe_durability=_flag("unsafe_durability", given.get("unsafe_durability", "")),
        )


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    ours = {name for name in environment if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX)}
    given = {name.removeprefix(PREFIX).lower(): environment[name] for name in ours}
    if unknown := given.keys() - NAMES:
        raise UsageError(f"unknown setting {PREFIX}{min(unknown).upper()}; there are {_listed(NAMES)}")
    return given


def _of_file(path: str | None) -> Mapping[str, object]:
    if not path:
        return {}
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"TAPE_CONFIG {shown(path)} cannot be read: {error}") from error
    if unknown := given.keys() - NAMES:
        raise UsageError(f"unknown setting {shown(min(unknown))} in {shown(path)}; there are {_listed(NAMES)}")
    return given


def _flag(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in _TRUE + _FALSE:
        raise UsageError(f"{PREFIX}{name.upper()} must be 1 or 0, not {shown(value)}")
    return text in _TRUE


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(PREFIX + name.upper() for name in names - {"connections"}))
