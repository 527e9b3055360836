"""Handlers run the operations of their owners."""

import pytest

from tape.core.caller import PLAIN, Caller
from tape.core.errors import UsageError
from tape.operations.budgets import GetBudget
from tape.operations.gates import GetGate
from tape.operations.handlers import Handlers
from tape.operations.values import ListValues


class Owner:
    async def get(self, request: GetGate, caller: Caller) -> str:
        return f"{request.gate} for {caller.schema_version}"

    async def _hidden(self, request: GetBudget, caller: Caller) -> None: ...


class Other:
    async def list(self, request: ListValues, caller: Caller) -> str:
        return request.namespace


async def test_each_operation_runs_where_its_request_is_taken() -> None:
    handlers = Handlers(Handlers(Owner()), Other())
    listed: object = await handlers.call(ListValues(namespace="n"))
    got: object = await handlers.call(GetGate(run_id="r", gate="g"), Caller(schema_version=2))

    assert (listed, got) == ("n", "g for 2")


async def test_an_operation_that_nobody_takes_is_named() -> None:
    with pytest.raises(UsageError, match="cannot run GetBudget"):
        await Handlers(Owner()).call(GetBudget(run_id="r"), PLAIN)
