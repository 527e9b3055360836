"""A value: what is known under a name, with a version for each time it was said."""

from dataclasses import dataclass

from tape.core.codec import JsonValue, decode
from tape.core.errors import UsageError, VersionConflict


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One version of a value; a deleted one is a version too, its tombstone."""

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

    def check(self, if_version: int | None) -> None:
        """Refuses whoever decided on another version; 0 stands for no value, never written or deleted."""
        if if_version is None:
            return
        if type(if_version) is not int or if_version < 0:
            raise UsageError("if_version is a version, 0 for none, or left out")
        actual = 0 if self.deleted and if_version == 0 else self.version
        if actual != if_version:
            raise VersionConflict("value", f"{self.namespace}/{self.key}", if_version, self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """A version, and the one before it; the first that a watcher sees has none before it."""

    value: Value
    prev_version: int | None = None
    prev_value_json: str | None = None
