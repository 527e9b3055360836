"""Errors over gRPC: a status, a sentence, and the same code and facts that HTTP has."""

import inspect
import traceback
from collections.abc import Mapping
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.struct_pb2 import Struct
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from tape.core.errors import Corrupt, TapeError, Unavailable
from tape.server.http.problem import Problem
from tape.telemetry import log

DOMAIN: Final = "tape.v1"
DETAILS: Final = "grpc-status-details-bin"


def status_of(error: Exception) -> str:
    """The name of an error's status."""
    return error.grpc_status if isinstance(error, TapeError) else "INTERNAL"


async def refuse(context: Any, error: Exception, method: str) -> None:
    """Ends a call with an error; the details of an unexpected one are only in the log."""
    problem = Problem.of(error)
    code = getattr(grpc.StatusCode, status_of(error))
    if problem.status >= 500:
        _log(problem, method, error)
    status = Status(code=code.value[0], message=problem.detail, details=_details(problem, error))
    await context.abort(code, problem.detail, ((DETAILS, status.SerializeToString()),))


def _details(problem: Problem, error: Exception) -> list[Packed]:
    known: dict[str, Any] = {**_own(error), **problem.fields}
    if isinstance(error, Corrupt):
        known = {**known, "reason": problem.detail, "global_seq": error.global_seq}
    facts = Struct()
    facts.update({**known, "trace_id": problem.trace_id, "status": problem.status})
    info = ErrorInfo(reason=problem.code, domain=DOMAIN)
    packed = [Packed(), Packed()]
    packed[0].Pack(info)
    packed[1].Pack(facts)
    return packed


def _own(error: Exception) -> Mapping[str, Any]:
    """The facts an error is made of, but for those of a store, which may hold a path or a statement."""
    if not isinstance(error, TapeError) or isinstance(error, Unavailable | Corrupt):
        return {}
    if not inspect.isfunction(type(error).__init__):
        return {}
    named = {name: getattr(error, name, ...) for name in inspect.signature(type(error)).parameters}
    return {name: fact for name, fact in named.items() if fact is None or isinstance(fact, str | int)}


def _log(problem: Problem, method: str, error: Exception) -> None:
    facts: dict[str, object] = {"trace_id": problem.trace_id, "code": problem.code, "route": method}
    if isinstance(error, TapeError):
        log.warning("request.refused", **facts, reason=str(error))
    else:
        frames = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
        log.error("request.failed", **facts, error=type(error).__name__, frames=frames)
