"""Compiles predicates to Spark SQL where Spark gives the evaluator's result; the rest is left to the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tape.core.predicate.ast import Call, Expression, Ident, descend
from tape.core.predicate.predicate import Predicate
from tape.lake.sql.expressions import PAYLOAD, compile_expression
from tape.lake.sql.payload_substrings import substrings
from tape.lake.sql.text import call, chain, function, is_null, literal
from tape.lake.sql.types import NotCompiled, SqlType, narrow


class PartRoute(Enum):
    """What evaluates a part of a predicate: Spark SQL or the CEL evaluator."""

    NATIVE = "native"
    EVALUATOR = "udf"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPart:
    """One operand of the top-level `&&`: its position in the text, what evaluates it, and why."""

    position: str
    route: PartRoute
    reason: str
    sql: str = ""
    doubts: tuple[str, ...] = ()
    reads_payload: bool = False
    substrings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPredicate:
    """A predicate for Spark: its parts, each in SQL or left to the evaluator."""

    parts: tuple[CompiledPart, ...]

    @property
    def is_native(self) -> bool:
        return all(part.route is PartRoute.NATIVE for part in self.parts)

    @property
    def condition(self) -> str:
        """All native parts: false, true, or NULL where one has an error and none is false."""
        return self._all(lambda part: part.sql)

    @property
    def may_match(self) -> str:
        """True for every entry that matches; for no other entry if the predicate is native and not in doubt."""
        wanted = dict.fromkeys(substring for part in self.parts for substring in part.substrings)
        contained = [call("contains", "payload_json", literal(substring)) for substring in wanted]
        return chain("AND", *contained, self._all(lambda part: chain("OR", part.sql, *part.doubts)))

    @property
    def may_fail(self) -> str:
        """True for every entry on which the predicate has an error."""
        if self.is_native:
            return _with_payload(chain("OR", is_null(chain("AND", *_sqls(self.parts))), *self._doubts()))
        return self._all(lambda part: chain("OR", call("coalesce", part.sql, literal(True)), *part.doubts))

    @property
    def doubt(self) -> str | None:
        """True where the condition may differ from the evaluator; None if it never does. Never NULL."""
        doubts = self._doubts()
        return _with_payload(chain("OR", *doubts)) if doubts else None

    def _doubts(self) -> list[str]:
        return [call("coalesce", doubt, literal(False)) for part in self.parts for doubt in part.doubts]

    def _all(self, render: Callable[[CompiledPart], str]) -> str:
        """Keeps conditions on columns apart from those on the payload, so that Spark can push them down."""
        native = [part for part in self.parts if part.route is PartRoute.NATIVE]
        conditions = [render(part) for part in native if not part.reads_payload]
        if of_payload := [render(part) for part in native if part.reads_payload]:
            conditions.append(_with_payload(chain("AND", *of_payload)))
        return chain("AND", *(conditions or [literal(True)]))


def compile_predicate(predicate: Predicate) -> CompiledPredicate:
    """Compiles a predicate; a blank one has no parts."""
    root = predicate.expression
    return CompiledPredicate(parts=() if root is None else tuple(map(_part, _conjuncts(root))))


def explain(text: str) -> list[CompiledPart]:
    """Which part of a predicate Spark evaluates, which one the evaluator, and why."""
    return list(compile_predicate(Predicate(text)).parts)


def _with_payload(condition: str) -> str:
    """Binds the parsed payload in a condition; a payload that is not JSON reads as null."""
    parsed = call("parse_json", call("coalesce", "payload_json", literal("null")))
    return call("exists", call("array", parsed), function(PAYLOAD, condition))


def _sqls(parts: Sequence[CompiledPart]) -> list[str]:
    return [part.sql for part in parts] or [literal(True)]


def _conjuncts(node: Expression) -> Iterator[Expression]:
    """The operands of the top-level `&&`."""
    if isinstance(node, Call) and node.function == "_&&_":
        for operand in node.operands:
            yield from _conjuncts(operand)
    else:
        yield node


def _part(node: Expression) -> CompiledPart:
    try:
        value = narrow(compile_expression(node, {}), SqlType.BOOL)
    except NotCompiled as reason:
        return CompiledPart(
            position=node.position, route=PartRoute.EVALUATOR, reason=str(reason), substrings=substrings(node)
        )
    return CompiledPart(
        position=node.position,
        route=PartRoute.NATIVE,
        reason="compiled; the evaluator decides where SQL is in doubt" if value.doubts else "compiled",
        sql=value.text,
        doubts=value.doubts,
        reads_payload=any(isinstance(each, Ident) and each.name == "entry.payload" for each in descend(node)),
        substrings=substrings(node),
    )
