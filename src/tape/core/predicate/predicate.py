"""Conditions over entries, written in CEL: checked and bounded once, evaluated many times."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, NewType, Protocol

from tape.core.errors import UsageError
from tape.core.predicate import limits
from tape.core.predicate.ast import Expression
from tape.core.predicate.protobuf import read_checked

Activation = NewType("Activation", object)

_VARIABLES = {
    "global_seq": "INT",
    "run_id": "STRING",
    "seq": "INT",
    "kind": "STRING",
    "type": "STRING",
    "subject": "STRING",
    "ts_ms": "INT",
    "schema_version": "INT",
    "payload": "DYN",
    "trace_id": "STRING",
    "prev_value_json": "STRING",
}
_COMPILER_ERROR = re.compile(
    r"<input>:(?P<position>\d+:\d+): (?P<reason>.*?)(?: \(in container 'entry'\))?$", re.MULTILINE
)
_MAX_ERROR = 200


class Matchable(Protocol):
    """What a predicate can see of an entry."""

    @property
    def global_seq(self) -> int: ...
    @property
    def run_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def ts_ms(self) -> int: ...
    @property
    def schema_version(self) -> int: ...
    @property
    def payload(self) -> object: ...
    @property
    def trace_id(self) -> str: ...
    @property
    def prev_value_json(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an entry matches; an evaluation that failed is no match and has an error."""

    matched: bool
    error: str | None = None

    def __bool__(self) -> bool:
        return self.matched


MATCH = Verdict(matched=True)
NO_MATCH = Verdict(matched=False)


class Predicate:
    """A type-checked CEL condition within the limits; a blank one matches every entry.

    Anything else raises a `UsageError` with the position or the limit. Processes exchange predicates as text.
    """

    __slots__ = ("_evaluate", "_is_dynamic", "expression", "text")

    expression: Expression | None
    """The checked syntax tree; None when blank."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._evaluate: Callable[[Activation], Any] | None = None
        self._is_dynamic = False
        self.expression = None
        if text.strip():
            self._compile(text)

    def _compile(self, text: str) -> None:
        _check_length(text)
        engine = _engine()
        compiled = engine.compile(text)
        self.expression = read_checked(compiled.serialize())
        limits.check(self.expression)
        _check_result(self.expression)
        for pattern in limits.regexes(self.expression):
            engine.check_regex(str(pattern.value), pattern.position)
        self._is_dynamic = self.expression.type != "bool"
        self._evaluate = compiled.eval

    @property
    def is_blank(self) -> bool:
        return self._evaluate is None

    def evaluate(self, activation: Activation) -> Verdict:
        """Match, no match, or no match with an error; never raises."""
        if self._evaluate is None:
            return MATCH
        try:
            result = self._evaluate(activation)
        except RuntimeError as error:
            return _failed(str(error))
        if self._is_dynamic and (kind := result.type().name()) not in {"BOOL", "ERROR"}:
            return _failed(f"the result is a {kind}, not a BOOL")
        outcome = result.value()
        if outcome is True:
            return MATCH
        return NO_MATCH if outcome is False else _failed(outcome)

    def __reduce__(self) -> tuple[type["Predicate"], tuple[str]]:
        return Predicate, (self.text,)

    def __repr__(self) -> str:
        return f"Predicate({self.text!r})"


def bind(entry: Matchable) -> Activation:
    """An entry prepared once for any number of predicates; content that is not JSON is null."""
    payload = entry.payload
    return _engine().activate(
        {
            "entry.global_seq": entry.global_seq,
            "entry.run_id": entry.run_id,
            "entry.seq": entry.seq,
            "entry.kind": entry.kind,
            "entry.type": entry.type,
            "entry.subject": entry.subject,
            "entry.ts_ms": entry.ts_ms,
            "entry.schema_version": entry.schema_version,
            "entry.payload": None if isinstance(payload, bytes) else payload,
            "entry.trace_id": entry.trace_id,
            "entry.prev_value_json": entry.prev_value_json,
        }
    )


def evaluated(text: str, activation: Activation) -> tuple[object, str | None]:
    """The value of any expression, or None and the error; one that does not compile raises `UsageError`."""
    compiled = _engine().compile(text)
    try:
        result = compiled.eval(activation)
    except RuntimeError as error:
        return None, _failed(str(error)).error
    if result.type().name() == "ERROR":
        return None, _failed(str(result.value())).error
    return result.value(), None


class _Engine:
    """The CEL environment of this process."""

    def __init__(self, cel: Any) -> None:
        # CEL has a `type` of its own; the names of a container are looked up first, and `type(x)` still works.
        variables = {f"entry.{name}": getattr(cel.Type, kind) for name, kind in _VARIABLES.items()}
        self._env = cel.NewEnv(variables=variables, container="entry")
        self._touch = self._env.compile("type(payload) == int").eval
        self._match = self._env.compile("kind.matches(subject)").eval

    def compile(self, text: str) -> Any:
        try:
            return self._env.compile(text)
        except RuntimeError as error:
            raise _translated(str(error)) from None

    def activate(self, values: dict[str, object]) -> Activation:
        activation = Activation(self._env.Activation(values))
        self._touch(activation)  # converts the payload now, so that no predicate's time includes it
        return activation

    def check_regex(self, pattern: str, position: str) -> None:
        outcome = self._match(self._env.Activation({"entry.kind": "", "entry.subject": pattern})).value()
        if isinstance(outcome, str):
            raise limits.refusal(position, _shortened(outcome.partition(": ")[2]))


@cache
def _engine() -> _Engine:
    try:
        return _Engine(import_module("cel_expr_python.cel"))
    except ImportError:
        raise UsageError("predicates need the package cel-expr-python; install tape-bus[cel]") from None


def _check_length(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"predicate is not valid Unicode: {error.reason} at character {error.start + 1}") from None
    if size > limits.MAX_TEXT_BYTES:
        raise UsageError(f"predicate of {size} bytes, the limit is {limits.MAX_TEXT_BYTES}")


def _check_result(expression: Expression) -> None:
    if expression.type not in {"bool", "dyn"}:
        raise limits.refusal(expression.position, f"the result is of type {expression.type}, not bool")


def _translated(error: str) -> UsageError:
    if found := _COMPILER_ERROR.search(error):
        return limits.refusal(found["position"], _shortened(found["reason"]))
    if "recursion" in error:
        return UsageError(f"predicate is nested too deeply, the limit is {limits.MAX_DEPTH} levels")
    return UsageError(f"predicate refused by the CEL compiler: {_shortened(error)}")


def _failed(error: str) -> Verdict:
    return Verdict(matched=False, error=_shortened(error))


def _shortened(error: str) -> str:
    first_line = error.partition("\n")[0]
    return first_line if len(first_line) <= _MAX_ERROR else first_line[: _MAX_ERROR - 1] + "…"
