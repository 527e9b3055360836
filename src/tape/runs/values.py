"""The ledger of values: every version is an entry, and a write based on a stale version is refused."""

from dataclasses import replace
from functools import partial
from typing import Final, Self

from tape.bus.stream import Stream
from tape.core import subject as subjects
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import TooLarge
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.page import Page
from tape.core.ports import CellSnapshot
from tape.core.value import Deletion, Value, ValueChange
from tape.operations.values import DeleteValue, GetValue, ListValues, OfValue, WriteValue
from tape.runs.keyed_calls import KeyedCall
from tape.runs.ledger import Ledger, LedgerEvent, Transition, digest, parts
from tape.runs.ledger_store import LedgerStore

MAX_VALUE: Final = 160 << 10  # an entry holds two values, escaped

VALUES: Final = Ledger("value", Value, lambda value: parts(value.namespace, value.key))
CHANGED: Final = "changed"


def write(snapshot: CellSnapshot, request: WriteValue) -> Transition[Value]:
    """Writes the next version, if the caller decided on the last one."""
    before = value_of(snapshot, request.namespace, request.key)
    before.check(request.if_version, request.if_exists)
    after = Value(
        namespace=request.namespace,
        key=request.key,
        version=before.version + 1,
        value_json=request.value_json,
        writer=request.writer,
        ts_ms=snapshot.now_ms,
    )
    return _transition(snapshot, before, after)


def delete(
    snapshot: CellSnapshot, namespace: str, key: str, if_version: int | None = None, writer: str = ""
) -> Transition[Value]:
    """Writes a deletion, which is a version too; a value that does not exist stays as it is."""
    before = value_of(snapshot, namespace, key)
    before.check(if_version)
    if before.deleted or before.version == 0:
        return Transition(result=before)
    after = replace(
        before, version=before.version + 1, value_json="", writer=writer, ts_ms=snapshot.now_ms, deleted=True
    )
    return _transition(snapshot, before, after)


def value_of(snapshot: CellSnapshot, namespace: str, key: str) -> Value:
    """The stored value; one that never existed is a deleted one of version 0."""
    unknown = Value(namespace=namespace, key=key, version=0, deleted=True)
    return VALUES.find(snapshot, parts(namespace, key)) or unknown


def run_of(namespace: str) -> RunId:
    return RunId(f"tape.value.{digest(namespace)}")


class Values:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def write(self, request: WriteValue, caller: Caller) -> Value:
        _check_size(request.value_json)
        keyed = KeyedCall.of(
            request.call_key, "value", request.namespace, request.key, request.value_json, request.if_version,
            request.writer, *((True,) if request.if_exists else ()),
        )  # fmt: skip
        return (await self._settle(request, keyed, partial(write, request=request), caller))[0]

    async def delete(self, request: DeleteValue, caller: Caller) -> Deletion:
        namespace, key, if_version, writer = request.namespace, request.key, request.if_version, request.writer
        keyed = KeyedCall.of(request.call_key, "value deleted", namespace, key, if_version, writer)
        decide = partial(delete, namespace=namespace, key=key, if_version=if_version, writer=writer)
        value, is_changed = await self._settle(request, keyed, decide, caller)
        return Deletion(value=value, was_there=is_changed)

    async def get(self, request: GetValue, caller: Caller) -> Value:
        return await self._find(request.namespace, request.key)

    async def listed(self, request: ListValues, caller: Caller) -> Page[Value]:
        return await self._store.page(VALUES, request, (CHANGED,), parts(request.namespace))

    async def _find(self, namespace: str, key: str) -> Value:
        return value_of(await self._store.cells.snapshot((VALUES.at(parts(namespace, key)),)), namespace, key)

    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> "ValueWatch":
        """The current version and every later one; or every version after `from_version`."""
        GetValue(namespace=namespace, key=key)  # checks the names
        subject = f"/tape/value/*/{subjects.escape(namespace)}/{subjects.escape(key)}"
        if from_version is not None:
            run_id = run_of(namespace)
            first = (await self._store.head(run_id)).floor
            return ValueWatch(self._store.journal.stream(run_id=run_id, from_seq=first, subject=subject), from_version)
        head = await self._store.journal.head()  # read first, so that no change is missed between the two
        now = await self._find(namespace, key)
        return ValueWatch(self._store.journal.stream(subject=subject, from_global_seq=head), now.version, now)

    async def _settle(
        self, request: OfValue, keyed: KeyedCall, decide: "partial[Transition[Value]]", caller: Caller
    ) -> tuple[Value, bool]:
        """The value, and whether the first call with this key has changed it."""

        def once(snapshot: CellSnapshot) -> Transition[tuple[Value, bool]]:
            if (again := keyed.answer(snapshot, Value)) is not None:
                return again.returning((again.result, keyed.has_changed(snapshot)))
            transition = decide(snapshot)
            is_changed = bool(transition.cells)
            return keyed.store_answer(snapshot, transition).returning((transition.result, is_changed))

        cell = VALUES.at(parts(request.namespace, request.key))
        return await self._store.change((cell, *keyed.ids), once, caller)


class ValueWatch:
    """Versions of a value as they are written, each once."""

    def __init__(self, stream: Stream, seen: int, first: Value | None = None) -> None:
        self._stream = stream
        self._seen = seen
        self.began_at = seen  # 0 where there was no value yet
        self._first = first if first is not None and first.version else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ValueChange:
        if self._first is not None:
            first, self._first = self._first, None
            return ValueChange(value=first)
        async for entry in self._stream:
            change = change_of(entry)
            if change.value.version > self._seen:
                self._seen = change.value.version
                return change
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._stream.aclose()


def change_of(entry: Entry) -> ValueChange:
    """The change that an entry records."""
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    held = payload.get("value")
    text = held.get("value_json") if isinstance(held, dict) else ""
    version, before, prev = payload["version"], payload["prev_version"], payload["prev_value_json"]
    value = Value(
        namespace=str(payload["namespace"]),
        key=str(payload["key"]),
        version=version if isinstance(version, int) else 0,
        value_json=str(text),
        writer=str(payload["writer"]),
        ts_ms=entry.ts_ms,
        deleted=entry.type == "deleted",
    )
    return ValueChange(value=value, prev_version=before if isinstance(before, int) else None, prev_value_json=str(prev))


def _transition(snapshot: CellSnapshot, before: Value, after: Value) -> Transition[Value]:
    payload: dict[str, JsonValue] = {
        "namespace": after.namespace,
        "key": after.key,
        "version": after.version,
        "writer": after.writer,
        "prev_version": before.version,
        "prev_value_json": before.value_json,
    }
    if after.deleted:
        payload["deleted"] = True
    else:
        names = ("namespace", "key", "value_json", "version")
        payload["value"] = {name: getattr(after, name) for name in names}
    verb = "deleted" if after.deleted else CHANGED
    event = LedgerEvent(
        run_id=run_of(after.namespace), kind="value", verb=verb, dims=(after.namespace, after.key), payload=payload
    )
    change = VALUES.change(snapshot, parts(after.namespace, after.key), after, verb)
    return Transition(result=after, cells=(change,), events=(event,), opens=True)


def _check_size(value_json: str) -> None:
    if len(value_json.encode()) > MAX_VALUE:
        raise TooLarge(f"a value is at most {MAX_VALUE:,} bytes; keep what is larger elsewhere and its name here")
