"""Typed contracts: the schema of each event type, compared with its recorded snapshot."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from tape.core.errors import UsageError

Schema: TypeAlias = Mapping[str, Any]

_SUFFIXES: Final = ("", "Payload", "Event")
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DOCUMENTATION_ONLY: Final = frozenset({"title", "description", "examples", "$defs", "deprecated"})


@dataclass(frozen=True, slots=True)
class Contract:
    """The payload schema of an event type, with the version it is published as."""

    name: str
    event_type: str
    event_version: int
    schema: Schema
    summary: str


class ContractStatus(Enum):
    """How a contract compares with its snapshot."""

    SAME = "same"
    NEW = "new"
    ADDED = "added"
    UNCOUNTED = "uncounted"
    BROKEN = "broken"
    GONE = "gone"


class ContractCheck(NamedTuple):
    """The result of comparing one event type with its snapshot."""

    event_type: str
    status: ContractStatus
    reasons: tuple[str, ...] = ()

    @property
    def is_recordable(self) -> bool:
        return self.status in (ContractStatus.NEW, ContractStatus.ADDED)


def load(modules: Sequence[str]) -> list[Contract]:
    """The contracts of modules: a contract is `<EVENT>_TYPE`, `<EVENT>_VERSION` and a payload class of that name."""
    found = [contract for name in modules for contract in contracts_of(import_module(name))]
    types = [contract.event_type for contract in found]
    for event_type in types:
        if types.count(event_type) > 1:
            raise UsageError(f"two contracts are published as {event_type!r}")
    return sorted(found, key=lambda contract: contract.event_type)


def contracts_of(module: ModuleType) -> Iterator[Contract]:
    names = [name.removesuffix("_TYPE") for name in vars(module) if name.endswith("_TYPE") and name.isupper()]
    for name in names:
        version = getattr(module, f"{name}_VERSION", None)
        model = _model_of(module, name)
        if not isinstance(version, int) or model is None:
            raise UsageError(f"{module.__name__}: {name}_TYPE needs {name}_VERSION and a payload class of that name")
        yield Contract(name, getattr(module, f"{name}_TYPE"), version, schema_of(model), _summary(model))


def schema_of(model: type) -> Schema:
    """The JSON schema of a pydantic model, a msgspec struct or a dataclass."""
    if describe := getattr(model, "model_json_schema", None):
        schema: Schema = describe()
        return schema
    return msgspec.json.schema(model)


def compare(contract: Contract, before: Mapping[str, Any] | None) -> ContractCheck:
    """Compares a contract with its snapshot."""
    if before is None:
        return ContractCheck(contract.event_type, ContractStatus.NEW, ("it has no snapshot yet",))
    broken = tuple(breaks(before["schema"], contract.schema))
    if broken:
        return ContractCheck(contract.event_type, ContractStatus.BROKEN, broken)
    recorded = int(before["event_version"])
    if _bare(before["schema"]) == _bare(contract.schema) and recorded == contract.event_version:
        return ContractCheck(contract.event_type, ContractStatus.SAME)
    if contract.event_version <= recorded:
        return ContractCheck(
            contract.event_type, ContractStatus.UNCOUNTED, (f"its shape has changed since version {recorded}",)
        )
    return ContractCheck(
        contract.event_type, ContractStatus.ADDED, (f"version {contract.event_version} adds to {recorded}",)
    )


def breaks(before: Schema, now: Schema) -> Iterator[str]:
    """The changes that can break a consumer of the old schema."""
    yield from _breaks(before, now, before, now, "$")


def _breaks(before: Any, now: Any, old: Schema, new: Schema, path: str) -> Iterator[str]:
    before, now = _resolved(before, old), _resolved(now, new)
    fields, others = before.get("properties", {}), now.get("properties", {})
    for name, field in fields.items():
        field_path = f"{path}.{name}"
        if name not in others:
            yield f"{field_path} is gone"
            continue
        if name in before.get("required", ()) and name not in now.get("required", ()):
            yield f"{field_path} may be missing now"
        yield from _breaks(field, others[name], old, new, field_path)
    if "items" in before and "items" in now:
        yield from _breaks(before["items"], now["items"], old, new, f"{path}[]")
    if _kind(before, old) != _kind(now, new):
        yield f"{path} is of another type now"


def _resolved(part: Any, root: Schema) -> Schema:
    while isinstance(part, Mapping) and "$ref" in part:
        part = root["$defs"][part["$ref"].rpartition("/")[2]]
    return part if isinstance(part, Mapping) else {}


def _kind(part: Schema, root: Schema) -> object:
    """The constraints on a value, without its fields, which are compared one by one."""
    inside = ("properties", "required", "items", "default", "$ref")
    kept = {name: value for name, value in part.items() if name not in _DOCUMENTATION_ONLY and name not in inside}
    return _bare({name: _unfolded(value, root) for name, value in kept.items()})


def _unfolded(value: Any, root: Schema) -> Any:
    if isinstance(value, list):
        return [_resolved(each, root) if isinstance(each, Mapping) else each for each in value]
    return value


def _bare(value: Any) -> Any:
    """A schema without its documentation."""
    if isinstance(value, Mapping):
        return {name: _bare(each) for name, each in value.items() if name not in _DOCUMENTATION_ONLY - {"$defs"}}
    return [_bare(each) for each in value] if isinstance(value, list) else value


class Snapshots:
    """The recorded contracts, one file per event type."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, contracts: Sequence[Contract]) -> list[ContractCheck]:
        """Compares each contract with its snapshot, and reports snapshots without a contract."""
        known = {contract.event_type for contract in contracts}
        gone = [
            ContractCheck(path.stem, ContractStatus.GONE, ("no module defines it",))
            for path in self._paths()
            if path.stem not in known
        ]
        return [compare(contract, self._read(contract.event_type)) for contract in contracts] + gone

    def record(self, contract: Contract) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        fields = {"event_type": contract.event_type, "event_version": contract.event_version, "schema": contract.schema}
        self._path(contract.event_type).write_text(
            json.dumps(fields, indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob("*.json"))

    def _read(self, event_type: str) -> Mapping[str, Any] | None:
        path = self._path(event_type)
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    def _path(self, event_type: str) -> Path:
        if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", event_type):
            raise UsageError(f"an event type that is recorded is named like orders.placed, not {event_type!r}")
        return self._folder / f"{event_type}.json"


def catalog(contracts: Sequence[Contract]) -> str:
    """The contracts as a page of Markdown."""
    return "\n".join(["# Events", *(line for contract in contracts for line in _section(contract)), ""])


def _section(contract: Contract) -> Iterator[str]:
    shape = _resolved(contract.schema, contract.schema)
    yield from (
        "",
        f"## {contract.event_type}",
        "",
        f"Version {contract.event_version}. {contract.summary}".strip(),
        "",
    )
    yield from ("| field | type | required |", "|---|---|---|")
    for name, field in shape.get("properties", {}).items():
        kind = _resolved(field, contract.schema).get("type", "any")
        yield f"| {name} | {kind} | {'yes' if name in shape.get('required', ()) else 'no'} |"


def _model_of(module: ModuleType, name: str) -> type | None:
    for kind in vars(module).values():
        if inspect.isclass(kind) and _is_model(kind):
            words = {_WORDS.sub("_", kind.__name__.removesuffix(suffix)).upper() for suffix in _SUFFIXES}
            if name in words:
                return kind
    return None


def _is_model(kind: type) -> bool:
    return hasattr(kind, "model_json_schema") or is_dataclass(kind) or issubclass(kind, msgspec.Struct)


def _summary(model: type) -> str:
    text = inspect.getdoc(model) or ""
    return text.partition("\n")[0] if "(" not in text.partition("\n")[0] else ""
