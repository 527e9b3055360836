"""A server's problem+json as the error that it was on the other side."""

import inspect
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import msgspec

from tape.core import errors
from tape.core.errors import TapeError, UsageError

MAX_DETAIL: Final = 1024


def raised_from(status: int, body: bytes, known: Mapping[str, Any]) -> TapeError:
    """The error of a refused request; facts that its class needs come from the body, or are known to the caller.

    A class whose facts are missing is replaced by the family it belongs to, which still tells what to do.
    """
    problem = _parsed(body)
    family = _CLASSES.get(str(problem.get("code"))) or _STATUSES.get(status, UsageError)
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    return _made(family, {**known, **problem}, detail[:MAX_DETAIL])


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        problem = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _made(family: type[TapeError], facts: Mapping[str, Any], detail: str) -> TapeError:
    for candidate in family.__mro__:
        if not issubclass(candidate, TapeError):
            continue
        needed = _parameters(candidate)
        if needed is None:
            return candidate(detail)
        if all(name in facts for name in needed):
            return candidate(**{name: facts[name] for name in needed})
    return TapeError(detail)


def _parameters(family: type[TapeError]) -> list[str] | None:
    """The facts that a class is made of, or None when it is made of its message."""
    if not inspect.isfunction(family.__init__):
        return None
    named = list(inspect.signature(family).parameters.values())
    return [each.name for each in named if each.default is inspect.Parameter.empty]


def _is_family(value: object) -> TypeGuard[type[TapeError]]:
    return isinstance(value, type) and issubclass(value, TapeError)


_CLASSES: Final = {family.__new__(family).code: family for family in vars(errors).values() if _is_family(family)}
_STATUSES: Final[dict[int, type[TapeError]]] = {
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.TooLarge,
    429: errors.LimitReached,
}
