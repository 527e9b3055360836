"""Values, as a program sets, reads and watches them."""

from collections.abc import Sequence

from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.page import Page
from tape.core.value import Value, ValueChange
from tape.operations.ledgers import Ledgers, Watching
from tape.operations.operation import PAGE
from tape.operations.value_history import history
from tape.operations.values import DeleteValue, GetValue, ListValues, WriteValue
from tape.operations.whole_list import read_all


class Values:
    """What is known under names; every version is an entry of the journal."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def set(
        self,
        namespace: str,
        name: str,
        value: JsonValue,
        *,
        if_version: int | None = None,
        if_exists: bool = False,
        writer: str = "",
        key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value:
        """Writes the next version; with `if_version`, only over that one (0: over none). With a key, once.

        With `if_exists`, only over a value that is not deleted.
        """
        request = WriteValue(
            namespace=namespace, key=name, value_json=codec.encode(value), if_version=if_version, if_exists=if_exists,
            writer=writer, call_key=key,
        )  # fmt: skip
        return await self._ledgers.call(request, caller)

    async def get(self, namespace: str, name: str) -> Value | None:
        """The newest version, or None if there is no value or it was deleted."""
        found = await self._ledgers.call(GetValue(namespace=namespace, key=name))
        return None if found.deleted else found

    async def newest(self, namespace: str, name: str) -> Value:
        """The newest version, which may be a tombstone; version 0 if there never was a value."""
        return await self._ledgers.call(GetValue(namespace=namespace, key=name))

    async def delete(
        self,
        namespace: str,
        name: str,
        *,
        if_version: int | None = None,
        writer: str = "",
        key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value:
        """Writes a tombstone; what is not there stays as it is."""
        request = DeleteValue(namespace=namespace, key=name, if_version=if_version, writer=writer, call_key=key)
        return (await self._ledgers.call(request, caller)).value

    async def list_all(self, namespace: str) -> Sequence[Value]:
        """The values of a namespace, by name."""
        return sorted(await read_all(self._ledgers, ListValues(namespace=namespace)), key=lambda value: value.key)

    async def list(self, namespace: str, *, limit: int = PAGE, cursor: str = "") -> Page[Value]:
        """Some values of a namespace, by escaped name; the cursor is the `next_cursor` of the page before."""
        return await self._ledgers.call(ListValues(namespace=namespace, limit=limit, cursor=cursor))

    async def history(self, namespace: str, name: str, limit: int = 100) -> Sequence[ValueChange]:
        """The newest versions, the oldest of them first; tombstones are versions too."""
        return await history(self._ledgers, namespace, name, limit)

    async def watch(self, namespace: str, name: str, from_version: int | None = None) -> Watching:
        """What is known now and every version after it; or every version after the one that is named."""
        return await self._ledgers.watch(namespace, name, from_version)
