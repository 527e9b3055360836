"""Turns a server's problem+json into the error that the server raised."""

import inspect
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

import msgspec

from tape.core import errors
from tape.core.errors import TapeError, UsageError

MAX_DETAIL: Final = 1024


def raised_from(status: int, body: bytes, known: Mapping[str, Any]) -> TapeError:
    """The error of a refused request; its attributes come from the body or from the caller.

    If attributes are missing, the error is of its parent class.
    """
    problem = _parsed(body)
    detail = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    return raised(str(problem.get("code")), status, detail, {**known, **problem})


def raised(code: str, status: int, detail: str, facts: Mapping[str, Any]) -> TapeError:
    """The error for a code and its attributes; an unknown code is mapped by its status."""
    family = _CLASSES.get(code) or _STATUSES.get(status, UsageError)
    return _made(family, facts, detail[:MAX_DETAIL])


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
        named = _parameters(candidate)
        if named is None:
            return candidate(detail)
        if all(name in facts for name, is_needed in named.items() if is_needed):
            return candidate(**{name: facts[name] for name in named if name in facts})
    return TapeError(detail)


def _parameters(family: type[TapeError]) -> dict[str, bool] | None:
    """The constructor's parameters and whether each is required, or None for a class that takes a message."""
    if not inspect.isfunction(family.__init__):
        return None
    named = inspect.signature(family).parameters.values()
    return {each.name: each.default is inspect.Parameter.empty for each in named}


def _is_family(value: object) -> TypeGuard[type[TapeError]]:
    return isinstance(value, type) and issubclass(value, TapeError)


_CLASSES: Final = {family.__new__(family).code: family for family in vars(errors).values() if _is_family(family)}
_STATUSES: Final[dict[int, type[TapeError]]] = {
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.TooLarge,
    429: errors.LimitReached,
}
