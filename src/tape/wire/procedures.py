"""The procedures of tape.proto that carry operations, as server and client use them."""

from collections.abc import Callable, Mapping
from os import urandom
from types import MappingProxyType
from typing import Any, Final

from tape.core.budget import Admission
from tape.core.effect import Compensation, EffectClaim
from tape.core.errors import UsageError
from tape.core.gate import SignalResult, WaitResult
from tape.core.ids import RunId
from tape.core.obligation import ObligationClaim
from tape.core.page import ANSWER_BYTES
from tape.core.run_state import RunStatus
from tape.core.timer import TimerClaim
from tape.core.value import Deletion
from tape.operations import budgets, effects, gates, journal_runs, obligations, runs, values
from tape.operations.operation import OperationRequest
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, member, number
from tape.wire.messages import journal_runs as run_messages
from tape.wire.messages.ledgers import (
    COMPACTION,
    DECISION,
    EFFECT,
    GATE,
    NAMES_OF_RUN,
    OBLIGATION,
    RUN,
    SESSION,
    SESSION_EVENT,
    TIMER,
    VALUE,
    begun,
    begun_value,
    budget,
    budget_value,
    resumed,
)
from tape.wire.outbox_procedures import PROCEDURES as OUTBOX
from tape.wire.procedure import Fields, Procedure, ResultCodec, claim, flag, optional, pages, procedure, record, rows
from tape.wire.work_procedures import PROCEDURES as WORK

TINY: Final = 1e-9  # of old clients, a smaller cap is no cap

EFFECT_RECORD: Final = record(EFFECT)
OBLIGATION_RECORD: Final = record(OBLIGATION)
BUDGET: Final = ResultCodec(lambda result, _: {"self": budget(result)}, budget_value)
ADMISSION: Final = ResultCodec(
    lambda result, _: {"admitted": result.is_admitted, "reason": result.reason, "state": budget(result.budget)},
    lambda message: Admission(budget=budget_value(message.state), is_admitted=message.admitted, reason=message.reason),
)
LEASED: Final = {"owner": "claimer", "lease": "lease_ttl_ms"}
OF_SESSION: Final = {"app": "app_name", "user": "user_id", "session": "session_id"}


def _begun_effect(effect: Any, _: Any) -> Fields:
    message = EFFECT.message(effect)
    names = ("idempotency_key", "status", "response_json", "error_json")
    outcome = {name: getattr(message, name) for name in names}
    if message.ByteSize() + sum(len(str(text).encode()) for text in outcome.values()) > ANSWER_BYTES:
        message.ClearField("response_json")  # the response has the outcome twice
        message.ClearField("error_json")
    return {"effect": message, **outcome}


def _begun_effect_value(message: Any) -> Any:
    return EFFECT.value(message.effect, response_json=message.response_json, error_json=message.error_json)


def _on_duplicate(message: Any) -> Fields:
    """Old clients give the kind alone."""
    kind = message.compensate_on_duplicate_kind
    return {"compensate_on_duplicate": Compensation(kind=kind)} if kind else {}


def _caps(message: Any) -> Fields:
    least = 0 if message.zero_is_a_cap else TINY
    given = {name: getattr(message, name) for name in ("usd_cap", "token_cap") if message.HasField(name)}
    return {name: given[name] if given.get(name, -1) >= least else None for name in ("usd_cap", "token_cap")}


def _waited(message: Any) -> WaitResult:
    resolution = message.resolution_json if message.delivered else None
    return WaitResult(gate=GATE.value(message.gate), resolution_json=resolution)


def _signalled(message: Any) -> SignalResult:
    status = member(RunStatus, message.run_status) if message.run_status else None
    return SignalResult(is_accepted=message.accepted, run_id=RunId(message.run_id), run_status=status)


def _receiver(message: Any) -> Fields:
    """Old clients may give the session beside the run."""
    return dict.fromkeys(("app", "user", "session"), "") if message.run_id else {}


def _version(message: Any) -> Fields:
    is_given = message.HasField("if_version") if message.DESCRIPTOR.fields_by_name["if_version"].has_presence else True
    return {"if_version": message.if_version if is_given and message.if_version >= 0 else None}


def _version_to_write(message: Any) -> Fields:
    return {"if_version": None} if message.if_exists and not message.if_version else _version(message)


def _any_version(request: values.WriteValue) -> Fields:
    return {"if_version": -1} if request.if_version is None else {}


def _max_events(message: Any) -> Fields:
    return {"max_events": max(message.max_events, 0) if message.max_events else None}


def _session_event(message: Any) -> Fields:
    """An event without an id gets one, which the response tells."""
    if not message.HasField("event"):
        raise UsageError("AppendEvent needs an event")
    message.event.id = message.event.id or urandom(16).hex()
    return {"event": SESSION_EVENT.value(message.event)}


def _given(*names: str) -> Callable[[Any], Fields]:
    """Texts that may be empty; where they are absent they are the default."""
    return lambda message: {name: getattr(message, name) for name in names if message.HasField(name)}


_JOURNAL_RUNS: Final = (
    procedure(
        journal_runs.OpenRun, record(run_messages.OPENED), read=_given("label", "started_at", "app", "user", "session")
    ),
    procedure(journal_runs.CloseRun, record(run_messages.CLOSED)),
    procedure(journal_runs.CancelRun, record(run_messages.CLOSED)),
    procedure(journal_runs.ReapRun, record(run_messages.CLOSED)),
    procedure(
        journal_runs.ListRuns, pages("runs", run_messages.RECORD),
        read=_given("app", "label", "prefix", "parent"),
    ),
    procedure(journal_runs.ShowRun, ResultCodec(run_messages.detail, run_messages.DETAIL.value)),
    procedure(journal_runs.ForkRun, record(run_messages.FORKED)),
    procedure(journal_runs.DiffRuns, record(run_messages.DIFF)),
    procedure(
        journal_runs.ListEvents, record(run_messages.EVENT_PAGE),
        names={"wait": "wait_ms"},
    ),
)  # fmt: skip

_RUNS: Final = (
    procedure(
        runs.BeginRun, ResultCodec(lambda result, _: {"self": begun(result)}, lambda message: begun_value(message.run)),
        names={"owner": "lease_owner", "lease": "lease_ttl_ms"}, within={"of": NAMES_OF_RUN, "identity": NO_NAMES},
    ),
    procedure(
        runs.TakeRun, ResultCodec(lambda result, _: {"self": resumed(result)}, begun_value), name="ResumeRun",
        names={"owner": "lease_owner", "lease": "lease_ttl_ms"},
    ),
    procedure(runs.RenewRun, record(RUN), name="ResumeRun"),
    procedure(runs.EndRun, record(RUN)),
    procedure(runs.GetRun, record(RUN)),
    procedure(
        runs.FindNewestRun, ResultCodec(lambda result, _: {"run_id": result}, lambda message: RunId(message.run_id)),
        names=OF_SESSION,
    ),
    procedure(runs.ListRunsToRecover, rows("runs", RUN), names={"app": "app_name"}),
    procedure(runs.ListCompactableRuns, rows("runs", RUN)),
    procedure(runs.CompactRun, record(COMPACTION)),
)  # fmt: skip

_EFFECTS: Final = (
    procedure(effects.RecordDecision, record(DECISION)),
    procedure(effects.GetDecision, optional("decision", DECISION)),
    procedure(effects.ListDecisions, pages("decisions", DECISION)),
    procedure(
        effects.BeginEffect, ResultCodec(_begun_effect, _begun_effect_value),
        names={"tool": "tool_name"},
    ),
    procedure(effects.CompleteEffect, EFFECT_RECORD),
    procedure(effects.ReconcileEffect, EFFECT_RECORD, names={"status": "resolved_status"}),
    procedure(effects.GetEffect, optional("effect", EFFECT)),
    procedure(effects.ListEffects, pages("effects", EFFECT)),
    procedure(effects.ListPendingEffects, rows("effects", EFFECT)),
    procedure(effects.ListEffectsToDispatch, rows("effects", EFFECT)),
    procedure(effects.ClaimEffectDispatch, claim("effect", EFFECT, EffectClaim), names=LEASED),
    procedure(effects.RecordDispatchAttempt, EFFECT_RECORD),
    procedure(effects.RecordExternalObservation, EFFECT_RECORD, read=_on_duplicate),
    procedure(effects.RetryEffect, EFFECT_RECORD),
    procedure(effects.DoubtSilentDispatches, rows("effects", EFFECT)),
)  # fmt: skip

_NUMBER: Final = {"number": "seq"}

_OBLIGATIONS: Final = (
    procedure(obligations.RegisterCompensation, OBLIGATION_RECORD),
    procedure(obligations.GetObligation, optional("obligation", OBLIGATION)),
    procedure(obligations.ListObligations, pages("obligations", OBLIGATION), names={"status": "status_filter"}),
    procedure(obligations.ListUnresolvedObligations, rows("obligations", OBLIGATION)),
    procedure(
        obligations.ClaimObligation, claim("obligation", OBLIGATION, ObligationClaim), names={**LEASED, **_NUMBER}
    ),
    procedure(obligations.RecordObligationAttempt, OBLIGATION_RECORD, names=_NUMBER),
    procedure(obligations.ResolveObligation, OBLIGATION_RECORD, names=_NUMBER),
    procedure(obligations.RetryObligation, OBLIGATION_RECORD),
)  # fmt: skip

_GATES: Final = (
    procedure(
        gates.AwaitSignal,
        ResultCodec(
            lambda result, _: {
                "delivered": result.is_delivered, "resolution_json": result.resolution_json,
                "gate": GATE.message(result.gate),
            },
            _waited,
        ),
        names={"context_json": "payload_json"},
    ),
    procedure(
        gates.SendSignal,
        ResultCodec(
            lambda result, _: {
                "accepted": result.is_accepted, "run_id": result.run_id, "run_status": number(result.run_status)
            },
            _signalled,
        ),
        names=OF_SESSION, read=_receiver,
    ),
    procedure(gates.GetGate, optional("gate", GATE)),
    procedure(gates.ListGates, pages("gates", GATE)),
    procedure(gates.SetTimer, record(TIMER)),
    procedure(gates.CancelTimer, flag("cancelled")),
    procedure(gates.GetTimer, optional("timer", TIMER)),
    procedure(gates.ListTimers, pages("timers", TIMER)),
    procedure(gates.ListDueTimers, rows("timers", TIMER), names={"lease": "lease_ttl_ms"}),
    procedure(gates.ClaimTimer, claim("timer", TIMER, TimerClaim), names=LEASED),
    procedure(gates.FireTimer, record(TIMER)),
)  # fmt: skip

_BUDGETS: Final = (
    procedure(budgets.SetBudget, BUDGET, write=lambda _: {"zero_is_a_cap": True}, read=_caps),
    procedure(budgets.AdmitBudget, ADMISSION),
    procedure(budgets.ReserveBudget, ADMISSION),
    procedure(budgets.SettleBudget, BUDGET),
    procedure(budgets.ChargeBudget, BUDGET),
    procedure(budgets.GetBudget, BUDGET),
)

_KEYED: Final = {"call_key": "idempotency_key"}

_VALUES: Final = (
    procedure(values.WriteValue, record(VALUE), names=_KEYED, read=_version_to_write, write=_any_version),
    procedure(
        values.DeleteValue,
        ResultCodec(
            lambda result, _: {
                "deleted": result.was_there, "version": result.value.version, "value": VALUE.message(result.value)
            },
            lambda message: Deletion(value=VALUE.value(message.value), was_there=message.deleted),
        ),
        names=_KEYED, read=_version,
    ),
    procedure(
        values.GetValue,
        ResultCodec(
            lambda result, _: {"found": not result.deleted, "value": VALUE.message(result)},
            lambda message: VALUE.value(message.value),
        ),
    ),
    procedure(values.ListValues, pages("values", VALUE)),
    procedure(values.CreateSession, record(SESSION), names=OF_SESSION),
    procedure(
        values.AppendEvent,
        ResultCodec(
            lambda result, request: {"event": request.event, "session": SESSION.message(result)},
            lambda message: SESSION.value(message.session),
        ),
        within={"of": OF_SESSION}, read=_session_event,
    ),
    procedure(
        values.GetSession, record(SESSION), within={"of": OF_SESSION}, read=_max_events,
        write=lambda request: {"max_events": 0 if request.max_events is None else request.max_events or -1},
    ),
    procedure(values.ListSessions, pages("sessions", SESSION), names=OF_SESSION),
    procedure(values.DeleteSession, flag("deleted"), within={"of": OF_SESSION}),
)  # fmt: skip

PROCEDURES: Final = (*_JOURNAL_RUNS, *_RUNS, *_EFFECTS, *_OBLIGATIONS, *_GATES, *_BUDGETS, *_VALUES, *WORK, *OUTBOX)
BY_OPERATION: Final[Mapping[type[OperationRequest[Any]], Procedure]] = MappingProxyType(
    {each.operation: each for each in PROCEDURES}
)
BY_NAME: Final[Mapping[str, Procedure]] = MappingProxyType({each.name: each for each in PROCEDURES})


def procedure_of(name: str, message: Any) -> Procedure:
    """The procedure of a request that came under this name. ResumeRun with an attempt renews the lease."""
    if isinstance(message, pb.ResumeRunRequest):
        return BY_OPERATION[runs.RenewRun if message.HasField("attempt") else runs.TakeRun]
    return BY_NAME[name]
