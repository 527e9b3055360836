"""The operations of an outbox on Postgres: each is one call of a function."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tape.store.connection import Row
from tape.store.outbox.database import Run


class PostgresSteps:
    """Implements `OutboxSteps`."""

    async def claim(self, run: Run, asked: Mapping[str, Any]) -> list[Row]:
        return await run("claim", **asked)

    async def fan_out(self, run: Run, limit: int) -> None:
        await run("fan_out", most=limit)

    async def settle(self, run: Run, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
        return await run("settle", settled=json.dumps(rows))

    async def retire(self, run: Run, asked: Mapping[str, Any]) -> list[Row]:
        return await run("retire", **asked)

    def check_partitions(self) -> None:
        return
