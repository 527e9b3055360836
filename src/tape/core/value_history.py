"""The versions that a value has had."""

from collections import deque
from contextlib import aclosing

from tape.core.ledgers import ValueLedger
from tape.core.value import ValueChange


async def history(ledger: ValueLedger, namespace: str, key: str, limit: int) -> list[ValueChange]:
    """The newest versions up to a limit, oldest first; deletions are versions too."""
    now = await ledger.find(namespace, key)
    found: deque[ValueChange] = deque(maxlen=limit)
    if now.version == 0:
        return []
    async with aclosing(await ledger.watch(namespace, key, max(now.version - limit, 0))) as watch:
        async for change in watch:
            found.append(change)
            if change.value.version >= now.version:
                break
    return list(found)
