"""Compiles the checked syntax tree of a predicate to Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from tape.core.predicate.ast import Call, Comprehension, Const, CreateList, Expression, Ident, Select
from tape.lake.sql import functions
from tape.lake.sql.text import NULL, call, case, chain, function, infix, is_known, is_null, literal, negate
from tape.lake.sql.types import (
    NotCompiled,
    SqlType,
    SqlValue,
    any_value,
    as_list,
    as_map,
    boolean,
    equal,
    narrow,
    order,
)

MOST_CHARACTERS: Final = 20_000  # of SQL; Java does not compile much longer code, and Spark would interpret it
SAFE_ELEMENTS: Final = 300  # 256 nodes hold at most 32 loops, and the evaluator allows 10,000 iterations in all
PAYLOAD: Final = "payload"  # the name of the parsed payload inside the SQL

_ELEMENT: Final = "element"
_MEMBER: Final = "member"
_COLUMNS: Final = {
    **dict.fromkeys(["global_seq", "seq", "ts_ms", "schema_version"], SqlType.INT),
    **dict.fromkeys(["run_id", "kind", "type", "subject", "trace_id", "prev_value_json"], SqlType.STRING),
}
_KINDS: Final = {"bool": SqlType.BOOL, "int": SqlType.INT, "double": SqlType.DOUBLE, "string": SqlType.STRING}
_ORDERS: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_LOGIC: Final = {"_&&_": "AND", "_||_": "OR"}
_LOOPS: Final = {"_||_": ("exists", False, "OR"), "_&&_": ("forall", True, "AND")}
_is_name = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch

Scope = Mapping[str, SqlValue]


def compile_expression(node: Expression, scope: Scope) -> SqlValue:
    """Compiles a node; raises NotCompiled with the reason if only the evaluator can evaluate it."""
    match node:
        case Const():
            value = _constant(node)
        case Ident():
            value = _variable(node, scope)
        case Select():
            value = _select(node, scope)
        case Call():
            value = _call(node, scope)
        case Comprehension():
            value = _loop(node, scope)
        case _:
            raise NotCompiled("only the evaluator builds lists and maps")
    if len(value.text) + sum(map(len, value.doubts)) > MOST_CHARACTERS:
        raise NotCompiled(f"its SQL would be longer than {MOST_CHARACTERS:,} characters")
    return value


def _constant(node: Const) -> SqlValue:
    if node.value is None:
        return SqlValue(kind=SqlType.NULL, text=NULL, can_fail=False)
    if node.type not in _KINDS or isinstance(node.value, bytes):
        raise NotCompiled(f"a literal of type {node.type}")
    is_nonzero = isinstance(node.value, float) and node.value != 0
    return SqlValue(kind=_KINDS[node.type], text=literal(node.value), can_fail=False, is_nonzero=is_nonzero)


def _variable(node: Ident, scope: Scope) -> SqlValue:
    if node.name in scope:
        return scope[node.name]
    name = node.name.removeprefix("entry.")
    if name == node.name:
        raise NotCompiled(f"{name} is not a variable of an entry")
    if name == "payload":
        return any_value(PAYLOAD, can_fail=False)
    return SqlValue(kind=_COLUMNS[name], text=name, can_fail=False)


def _select(node: Select, scope: Scope) -> SqlValue:
    operand = compile_expression(node.operand, scope)
    found = _step(operand, node.field)
    if not node.is_test:
        return found
    missing = case((is_known(as_map(operand)), literal(False)))
    return boolean(case((is_known(found.text), literal(True)), otherwise=missing), operand)


def _step(container: SqlValue, key: str | int) -> SqlValue:
    """The value of a VARIANT at a key or an index, or NULL."""
    if container.kind is not SqlType.ANY:
        raise NotCompiled(f"a field of {container.kind.name.lower()}")
    return any_value(container.root, container.path + _path(key)).given(container)


def _path(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _is_name(key):
        return f".{key}"
    if not key or '"' in key:
        raise NotCompiled("a key that a path in Spark cannot name")
    return f'["{key}"]'


def _call(node: Call, scope: Scope) -> SqlValue:
    if node.function in _SPECIAL:
        return _SPECIAL[node.function](node, scope)
    if node.function not in _PLAIN:
        raise NotCompiled(f"{node.function} is supported by the evaluator only")
    return _PLAIN[node.function](node, *(compile_expression(operand, scope) for operand in node.operands))


def _logic(node: Call, *operands: SqlValue) -> SqlValue:
    """Three-valued logic in Spark as in CEL: an operand that decides the result absorbs an error."""
    conditions = [narrow(operand, SqlType.BOOL) for operand in operands]
    return boolean(chain(_LOGIC[node.function], *(each.text for each in conditions)), *conditions)


def _not(_: Call, operand: SqlValue) -> SqlValue:
    condition = narrow(operand, SqlType.BOOL)
    return boolean(negate(condition.text), condition)


def _equal(node: Call, left: SqlValue, right: SqlValue) -> SqlValue:
    same = equal(left, right)
    return same if node.function == "_==_" else boolean(negate(same.text), same)


def _order(node: Call, left: SqlValue, right: SqlValue) -> SqlValue:
    return order(left, _ORDERS[node.function], right)


def _arithmetic(node: Call, left: SqlValue, right: SqlValue) -> SqlValue:
    known = left.kind if left.kind is not SqlType.ANY else right.kind
    kind = SqlType.INT if node.function == "_%_" else _KINDS.get(node.type, known)
    if kind is SqlType.ANY:
        raise NotCompiled(f"{node.function} of two values of unknown types")
    return functions.arithmetic(node.function, kind, left, right)


def _opposite(_: Call, operand: SqlValue) -> SqlValue:
    return functions.opposite(operand)


def _search(node: Call, text: SqlValue, part: SqlValue) -> SqlValue:
    return functions.search(node.function, text, part)


def _size(_: Call, operand: SqlValue) -> SqlValue:
    return functions.size(operand)


def _convert(node: Call, operand: SqlValue) -> SqlValue:
    return functions.convert(node.function, operand)


def _same(_: Call, operand: SqlValue) -> SqlValue:
    return operand


def _choose(_: Call, condition: SqlValue, yes: SqlValue, no: SqlValue) -> SqlValue:
    condition = narrow(condition, SqlType.BOOL)
    if yes.kind is not no.kind or yes.kind is SqlType.NULL:
        raise NotCompiled("the branches of ?: are of different or unknown types")
    text = case((condition.text, yes.text), (negate(condition.text), no.text))
    root = text if yes.kind is SqlType.ANY else ""
    can_be_nan = yes.can_be_nan or no.can_be_nan
    return SqlValue(kind=yes.kind, text=text, root=root, can_be_nan=can_be_nan).given(condition, yes, no)


def _matches(node: Call, scope: Scope) -> SqlValue:
    pattern = node.operands[1]
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        raise NotCompiled("a regular expression that is not a literal")
    return functions.matches(compile_expression(node.operands[0], scope), pattern.value)


def _index(node: Call, scope: Scope) -> SqlValue:
    key = node.operands[1]
    if not isinstance(key, Const) or isinstance(key.value, bool) or not isinstance(key.value, str | int):
        raise NotCompiled("an index that is not a literal text or int")
    if key.type == "uint" or (isinstance(key.value, int) and not 0 <= key.value < 2**31):
        raise NotCompiled("an index that a path in Spark cannot name")
    return _step(compile_expression(node.operands[0], scope), key.value)


def _in(node: Call, scope: Scope) -> SqlValue:
    item, container = node.operands
    if isinstance(container, CreateList):
        return _in_literals(compile_expression(item, scope), _literals(container))
    return _in_payload(compile_expression(item, scope), compile_expression(container, scope))


def _literals(node: CreateList) -> list[SqlValue]:
    if not all(isinstance(element, Const) for element in node.elements):
        raise NotCompiled("a list of anything but literals")
    return [_constant(element) for element in node.elements if isinstance(element, Const)]


def _in_literals(item: SqlValue, choices: list[SqlValue]) -> SqlValue:
    if not choices:
        return boolean(case((is_null(item.text), NULL), otherwise=literal(False)), item)
    found = [equal(item, choice) for choice in choices]
    return boolean(chain("OR", *(each.text for each in found)), *found)


def _in_payload(item: SqlValue, container: SqlValue) -> SqlValue:
    if container.kind is not SqlType.ANY or item.kind is SqlType.ANY or item.can_fail:
        raise NotCompiled("membership, unless of a literal or a variable in a part of the payload")
    found = equal(any_value(_MEMBER, can_fail=False), item)
    text = case(
        (is_known(as_list(container)), call("exists", as_list(container), function(_MEMBER, found.text))),
        (is_known(as_map(container)), _has_key(container, item)),
    )
    return boolean(text, container)


def _has_key(container: SqlValue, item: SqlValue) -> str:
    if item.kind is SqlType.STRING:
        return call("map_contains_key", as_map(container), item.text)
    return NULL if item.kind is SqlType.NULL else literal(False)


def _loop(node: Comprehension, scope: Scope) -> SqlValue:
    """Compiles `exists` and `all`; the other macros count or build."""
    step = node.step
    if not isinstance(step, Call) or not isinstance(node.start, Const) or step.function not in _LOOPS:
        raise NotCompiled("a comprehension other than all and exists")
    quantifier, start, operator = _LOOPS[step.function]
    if node.start.value is not start or not _is_accumulator(node, step.operands[0]):
        raise NotCompiled("a comprehension other than all and exists")
    body = step.operands[1]
    if isinstance(node.range, CreateList):
        return _unrolled(node, body, operator, scope)
    elements = compile_expression(node.range, scope)
    if elements.kind is not SqlType.ANY:
        raise NotCompiled(f"a comprehension over {elements.kind.name.lower()}")
    return _quantified(quantifier, elements, _condition(body, node, any_value(_ELEMENT, can_fail=False), scope))


def _is_accumulator(node: Comprehension, operand: Expression) -> bool:
    is_result = isinstance(node.result, Ident) and node.result.name == node.accumulator
    return is_result and isinstance(operand, Ident) and operand.name == node.accumulator


def _condition(body: Expression, node: Comprehension, element: SqlValue, scope: Scope) -> SqlValue:
    return narrow(compile_expression(body, {**scope, node.variable: element}), SqlType.BOOL)


def _unrolled(node: Comprehension, body: Expression, operator: str, scope: Scope) -> SqlValue:
    assert isinstance(node.range, CreateList)
    conditions = [_condition(body, node, element, scope) for element in _literals(node.range)]
    if not conditions:
        raise NotCompiled("a comprehension over nothing")
    return boolean(chain(operator, *(each.text for each in conditions)), *conditions)


def _quantified(quantifier: str, elements: SqlValue, body: SqlValue) -> SqlValue:
    """Leaves maps, which are iterated by key, and long lists, which may exhaust its budget, to the evaluator."""
    items = as_list(elements)
    is_long = infix(call("size", items), ">", str(SAFE_ELEMENTS))
    doubts = [case((is_null(items), is_known(as_map(elements))), otherwise=is_long)]
    if body.doubts:
        doubts.append(call("exists", items, function(_ELEMENT, chain("OR", *body.doubts))))
    text = call(quantifier, items, function(_ELEMENT, body.text))
    return SqlValue(kind=SqlType.BOOL, text=text, doubts=(*elements.doubts, *doubts))


_PLAIN: Final[Mapping[str, Callable[..., SqlValue]]] = {
    **dict.fromkeys(_LOGIC, _logic),
    **dict.fromkeys(_ORDERS, _order),
    **dict.fromkeys(["_==_", "_!=_"], _equal),
    **dict.fromkeys(["_+_", "_-_", "_*_", "_/_", "_%_"], _arithmetic),
    **dict.fromkeys(["startsWith", "endsWith", "contains"], _search),
    **dict.fromkeys(functions.CONVERSIONS, _convert),
    "!_": _not,
    "-_": _opposite,
    "size": _size,
    "dyn": _same,
    "_?_:_": _choose,
}
_SPECIAL: Final[Mapping[str, Callable[[Call, Scope], SqlValue]]] = {"@in": _in, "_[_]": _index, "matches": _matches}
