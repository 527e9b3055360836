"""The ledgers of gates, timers and budgets, behind a wire."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from tape.core.budget import Admission, Amount, Budget
from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.gate import Gate, SignalResult, WaitResult
from tape.core.ids import RunId
from tape.core.run_state import RunStatus
from tape.core.timer import Timer, TimerClaim
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build, member
from tape.wire.messages.known import GATE, TIMER, budget_value


class Gates:
    """Where runs wait."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def wait(
        self,
        run_id: str,
        gate: str,
        index: int = 0,
        context_json: str = "",
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> WaitResult:
        request = build(
            pb.AwaitSignalRequest, run_id=run_id, gate=gate, index=index, payload_json=context_json, fence=fence
        )
        answer = await self._channel.call("AwaitSignal", request, pb.AwaitSignalResponse, caller)
        resolution = answer.resolution_json if answer.delivered else None
        return WaitResult(gate=GATE.value(answer.gate), resolution_json=resolution)

    async def send(
        self, run_id: str, gate: str, resolution_json: str = "", key: str | None = None, caller: Caller = PLAIN
    ) -> SignalResult:
        request = build(pb.SendSignalRequest, run_id=run_id, gate=gate, resolution_json=resolution_json, key=key)
        answer = await self._channel.call("SendSignal", request, pb.SendSignalResponse, caller)
        status = member(RunStatus, answer.run_status) if answer.run_status else None
        return SignalResult(is_accepted=answer.accepted, run_id=RunId(answer.run_id), run_status=status)

    async def find(self, run_id: str, gate: str) -> Gate | None:
        answer = await self._channel.call(
            "GetGate", build(pb.GetGateRequest, run_id=run_id, gate=gate), pb.GetGateResponse
        )
        return GATE.value(answer.gate) if answer.found else None


class Timers:
    """What is to be done for runs at a time."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def set(
        self,
        run_id: str,
        timer_id: str,
        fire_at_ms: int,
        kind: str = "",
        payload_json: str = "",
        caller: Caller = PLAIN,
        app: str = "",
    ) -> Timer:
        request = build(
            pb.SetTimerRequest,
            run_id=run_id,
            timer_id=timer_id,
            fire_at_ms=fire_at_ms,
            kind=kind,
            payload_json=payload_json,
            app=app,
        )
        return TIMER.value(await self._channel.call("SetTimer", request, pb.TimerRecord, caller))

    async def cancel(self, run_id: str, timer_id: str, caller: Caller = PLAIN) -> bool:
        request = build(pb.CancelTimerRequest, run_id=run_id, timer_id=timer_id)
        return (await self._channel.call("CancelTimer", request, pb.CancelTimerResponse, caller)).cancelled

    async def due(
        self, limit: int = 200, now_ms: int | None = None, *, app: str = "", kinds: Sequence[str] | None = None
    ) -> Sequence[Timer]:
        if kinds is not None and not kinds:
            return ()  # an empty list on the wire is any
        request = build(pb.ListDueTimersRequest, limit=limit, now_ms=now_ms, app=app, kinds=kinds)
        answer = await self._channel.call("ListDueTimers", request, pb.ListDueTimersResponse)
        return [TIMER.value(each) for each in answer.timers]

    async def claim(
        self,
        run_id: str,
        timer_id: str,
        owner: str,
        lease: timedelta = WORK_LEASE,
        caller: Caller = PLAIN,
        app: str = "",
    ) -> TimerClaim:
        lease_ms = lease // timedelta(milliseconds=1)
        request = build(
            pb.ClaimTimerRequest, run_id=run_id, timer_id=timer_id, claimer=owner, lease_ttl_ms=lease_ms, app=app
        )
        answer = await self._channel.call("ClaimTimer", request, pb.ClaimTimerResponse, caller)
        return TimerClaim(timer=TIMER.value(answer.timer), is_acquired=answer.acquired)

    async def fire(self, run_id: str, timer_id: str, attempt: int, caller: Caller = PLAIN) -> Timer:
        request = build(pb.FireTimerRequest, run_id=run_id, timer_id=timer_id, attempt=attempt)
        return TIMER.value(await self._channel.call("FireTimer", request, pb.TimerRecord, caller))


class Budgets:
    """What runs may spend."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def set(
        self,
        run_id: str,
        usd_cap: float | Decimal | None = None,
        token_cap: int | None = None,
        caller: Caller = PLAIN,
    ) -> Budget:
        cap = None if usd_cap is None else Amount.of(usd_cap).usd
        tokens = None if token_cap is None else Amount(tokens=token_cap).tokens
        request = build(pb.SetBudgetRequest, run_id=run_id, usd_cap=cap, token_cap=tokens, zero_is_a_cap=True)
        return budget_value(await self._channel.call("SetBudget", request, pb.BudgetState, caller))

    async def admit(self, run_id: str, asked: Amount) -> Admission:
        request = build(pb.AdmitBudgetRequest, run_id=run_id, usd=asked.usd, tokens=asked.tokens)
        return _admission(await self._channel.call("AdmitBudget", request, pb.AdmitBudgetResponse))

    async def reserve(self, run_id: str, reservation_id: str, asked: Amount, caller: Caller = PLAIN) -> Admission:
        request = build(
            pb.ReserveBudgetRequest, run_id=run_id, reservation_id=reservation_id, usd=asked.usd, tokens=asked.tokens
        )
        return _admission(await self._channel.call("ReserveBudget", request, pb.AdmitBudgetResponse, caller))

    async def settle(self, run_id: str, reservation_id: str, spent: Amount, caller: Caller = PLAIN) -> Budget:
        request = build(
            pb.SettleBudgetRequest, run_id=run_id, reservation_id=reservation_id, usd=spent.usd, tokens=spent.tokens
        )
        return budget_value(await self._channel.call("SettleBudget", request, pb.BudgetState, caller))

    async def charge(self, run_id: str, spent: Amount, key: str | None = None, caller: Caller = PLAIN) -> Budget:
        request = build(pb.ChargeBudgetRequest, run_id=run_id, usd=spent.usd, tokens=spent.tokens, key=key)
        return budget_value(await self._channel.call("ChargeBudget", request, pb.BudgetState, caller))

    async def find(self, run_id: str) -> Budget:
        return budget_value(
            await self._channel.call("GetBudget", build(pb.GetBudgetRequest, run_id=run_id), pb.BudgetState)
        )


def _admission(answer: pb.AdmitBudgetResponse) -> Admission:
    return Admission(budget=budget_value(answer.state), is_admitted=answer.admitted, reason=answer.reason)
