"""Values, as a program sets, reads and watches them."""

from collections.abc import Sequence

from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.ledgers import ValueLedger, Watching
from tape.core.value import Value, ValueChange
from tape.core.value_history import history


class Values:
    """What is known under names; every version is an entry of the journal."""

    def __init__(self, ledger: ValueLedger) -> None:
        self._ledger = ledger

    async def set(
        self,
        namespace: str,
        name: str,
        value: JsonValue,
        *,
        if_version: int | None = None,
        writer: str = "",
        key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value:
        """Writes the next version; with `if_version`, only over that one (0: over none). With a key, once."""
        return await self._ledger.write(namespace, name, codec.encode(value), if_version, writer, key, caller)

    async def get(self, namespace: str, name: str) -> Value | None:
        """The newest version, or None if there is no value or it was deleted."""
        found = await self._ledger.find(namespace, name)
        return None if found.deleted else found

    async def find(self, namespace: str, name: str) -> Value:
        """The newest version, which may be a tombstone; version 0 if there never was a value."""
        return await self._ledger.find(namespace, name)

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
        return await self._ledger.delete(namespace, name, if_version, writer, key, caller)

    async def listed(self, namespace: str) -> Sequence[Value]:
        """The values of a namespace, by name."""
        return await self._ledger.listed(namespace)

    async def history(self, namespace: str, name: str, limit: int = 100) -> list[ValueChange]:
        """The newest versions, the oldest of them first; tombstones are versions too."""
        return await history(self._ledger, namespace, name, limit)

    async def watch(self, namespace: str, name: str, from_version: int | None = None) -> Watching:
        """What is known now and every version after it; or every version after the one that is named."""
        return await self._ledger.watch(namespace, name, from_version)
