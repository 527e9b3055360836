"""A value: JSON under a namespace and key, with a version for each write."""

from dataclasses import dataclass

from tape.core.codec import JsonValue, decode
from tape.core.errors import Conflict, UsageError, VersionConflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One version of a value; a deletion is a version too."""

    namespace: str
    key: str
    version: int
    value_json: str = ""
    writer: str = ""
    ts_ms: int = 0
    deleted: bool = False

    @property
    def value(self) -> JsonValue:
        return None if self.deleted else decode(self.value_json)

    def check(self, if_version: int | None, if_exists: bool = False) -> None:
        """Refuses a write based on another version; 0 means no value, never written or deleted."""
        if if_exists and self.deleted:
            raise Conflict(f"there is no value {self.namespace}/{self.key} to write over")
        if if_version is None:
            return
        if type(if_version) is not int or if_version < 0:
            raise UsageError("if_version is a version, 0 for none, or left out")
        actual = 0 if self.deleted and if_version == 0 else self.version
        if actual != if_version:
            raise VersionConflict("value", f"{self.namespace}/{self.key}", if_version, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """A version and the one before it; a watcher's first version has none."""

    value: Value
    prev_version: int | None = None
    prev_value_json: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The result of deleting a value: its newest version, and whether there was a value."""

    value: Value
    was_there: bool
