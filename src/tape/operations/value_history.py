"""The versions that a value has had."""

from collections import deque
from contextlib import aclosing

from tape.core.value import ValueChange
from tape.operations.ledgers import Ledgers
from tape.operations.values import GetValue


async def history(ledgers: Ledgers, namespace: str, key: str, limit: int) -> list[ValueChange]:
    """The newest versions up to a limit, oldest first; deletions are versions too."""
    now = await ledgers.call(GetValue(namespace=namespace, key=key))
    found: deque[ValueChange] = deque(maxlen=limit)
    if now.version == 0:
        return []
    async with aclosing(await ledgers.watch(namespace, key, max(now.version - limit, 0))) as watch:
        async for change in watch:
            found.append(change)
            if change.value.version >= now.version:
                break
    return list(found)
