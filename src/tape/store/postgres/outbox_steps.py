"""The operations of an outbox on Postgres: each is one call of a function."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tape.store.connection import Row
from tape.store.outbox.database import RunStatement


class PostgresSteps:
    """Implements `OutboxSteps`."""

    async def claim(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        return await run("claim", **asked)

    async def fan_out(self, run: RunStatement, limit: int) -> None:
        await run("fan_out", most=limit)

    async def settle(self, run: RunStatement, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        return await run("settle", settled=json.dumps(rows))

    async def retire(self, run: RunStatement, asked: Mapping[str, Any]) -> list[Row]:
        return await run("retire", **asked)

    def check_partitions(self) -> None:
        return
