"""The versions that a value has had."""

from collections import deque
from contextlib import aclosing

from tape.core.value import ValueChange
from tape.operations.ledgers import Ledgers
from tape.operations.values import GetValue


async def history(
    ledgers: Ledgers, namespace: str, key: str, limit: int, before: int | None = None
) -> list[ValueChange]:
    """The newest versions (below one, if it is given) up to a limit, oldest first; deletions are versions too."""
    newest = (await ledgers.call(GetValue(namespace=namespace, key=key))).version
    newest = newest if before is None else min(newest, before - 1)
    found: deque[ValueChange] = deque(maxlen=limit)
    if newest <= 0:
        return []
    async with aclosing(await ledgers.watch(namespace, key, max(newest - limit, 0))) as watch:
        async for change in watch:
            if change.value.version <= newest:
                found.append(change)
            if change.value.version >= newest:
                break
    return list(found)
