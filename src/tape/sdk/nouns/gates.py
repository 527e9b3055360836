"""Gates, as a program waits at them and answers."""

from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.ledgers import GateLedger, RunLedger
from tape.sdk.nouns.body import text_of


class Gates:
    """Where runs wait for somebody outside."""

    def __init__(self, ledger: GateLedger, runs: RunLedger) -> None:
        self._ledger = ledger
        self._runs = runs

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
        return await self._ledger.wait(run_id, gate, index, text_of(context), fence, caller)

    async def send(
        self, run_id: str, gate: str, resolution: JsonValue = None, *, key: str | None = None, caller: Caller = PLAIN
    ) -> SignalResult:
        """Answers at a gate; with a key, once."""
        return await self._ledger.send(run_id, gate, text_of(resolution), key, caller)

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
        run_id = await self._runs.newest(app, user, session)
        return await self._ledger.send(run_id, gate, text_of(resolution), key, caller)

    async def find(self, run_id: str, gate: str) -> Gate | None:
        return await self._ledger.find(run_id, gate)
