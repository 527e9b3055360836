"""Gates, as a program waits at them and answers."""

from collections.abc import Sequence

from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue, encode_optional
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.page import Page
from tape.operations.gates import AwaitSignal, GetGate, ListGates, SendSignal
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.whole_list import read_all


class Gates:
    """Where runs wait for somebody outside."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def wait(
        self,
        run_id: str,
        gate: str,
        index: int = 0,
        context: JsonValue = None,
        *,
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> WaitResult:
        """The answer to a run's n-th wait at a gate; without one yet, the run is parked until it comes."""
        request = AwaitSignal(run_id=run_id, gate=gate, index=index, context_json=encode_optional(context), fence=fence)
        return await self._ledgers.call(request, caller)

    async def send(
        self, run_id: str, gate: str, resolution: JsonValue = None, *, key: str | None = None, caller: Caller = PLAIN
    ) -> SignalResult:
        """Answers at a gate; with a key, once."""
        request = SendSignal(run_id=run_id, gate=gate, resolution_json=encode_optional(resolution), key=key)
        return await self._ledgers.call(request, caller)

    async def send_to_session(
        self,
        app: str,
        user: str,
        session: str,
        gate: str,
        resolution: JsonValue = None,
        *,
        key: str | None = None,
        caller: Caller = PLAIN,
    ) -> SignalResult:
        """Answers at a gate of the newest run of a session."""
        request = SendSignal(
            gate=gate, app=app, user=user, session=session, resolution_json=encode_optional(resolution), key=key
        )
        return await self._ledgers.call(request, caller)

    async def get(self, run_id: str, gate: str) -> Gate | None:
        return await self._ledgers.call(GetGate(run_id=run_id, gate=gate))

    async def list_all(self, run_id: str | None = None) -> Sequence[Gate]:
        """The gates of a run, by name; without a run, those that runs wait at now."""
        return await read_all(self._ledgers, ListGates(run_id=run_id))

    async def list(self, run_id: str | None = None, *, limit: int = PAGE, cursor: str = "") -> Page[Gate]:
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        return await self._ledgers.call(ListGates(run_id=run_id, limit=limit, cursor=cursor))
