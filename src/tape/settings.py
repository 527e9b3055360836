"""What the environment says, read once and checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tape.core.errors import UsageError

PREFIX: Final = "TAPE_"
TEST_PREFIX: Final = "TAPE_TEST_"
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("", "0", "false", "no", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where Tape lives; a URL chooses a backend."""

    data: Path = Path(".tape")
    store: str = ""
    unsafe_durability: bool = False

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """The settings of an environment; a TAPE_ variable nobody reads is an error, because it is a typing mistake."""
        given = {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environment.items()
            if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX)
        }
        if unknown := given.keys() - {"data", "store", "unsafe_durability"}:
            raise UsageError(f"unknown setting {PREFIX}{min(unknown).upper()}")
        data = Path(given.get("data") or ".tape")
        return cls(
            data=data,
            store=given.get("store") or f"sqlite:///{data / 'tape.db'}",
            unsafe_durability=_flag("unsafe_durability", given.get("unsafe_durability", "")),
        )


def _flag(name: str, value: str) -> bool:
    if value.lower() not in _TRUE + _FALSE:
        raise UsageError(f"{PREFIX}{name.upper()} must be 1 or 0, not {value!r}")
    return value.lower() in _TRUE
