"""Upper bounds for the time of a call in a predicate, for the largest and worst payload that an entry may have."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tape.core.predicate.ast import Call, Const, Expression, Ident, Select, children

Extent = Counter[str]
"""Which parts of the payload a value may hold, and how often each is read; empty for small values."""

ITERATIONS = 10_000  # the CEL runtime stops after this many iterations in one evaluation
SCALARS = frozenset({"bool", "int", "uint", "double", "null", "timestamp", "duration", "type"})
UNBOUNDED: Mapping[str, Extent] = {name: Counter({name: 1}) for name in ("entry.payload", "entry.prev_value_json")}

_EQUALITY_MS = 25
_SUM_MS = 25
_MEMBERSHIP_MS = 12
_KEY_MS = 3
_CONTAINS_MS = 6
_NEEDLE_LENGTH = 256  # from this length on, the length of the text to find matters
_CONVERSIONS = ("int", "uint", "double", "string", "bytes", "bool", "timestamp")
_SCAN_MS = {"matches": 4, "size": 1, "duration": 10} | dict.fromkeys(_CONVERSIONS, 2)


def extent(node: Expression, variables: Mapping[str, Extent]) -> Extent:
    """The parts of the payload that a value may hold; different fields are different parts."""
    if node.type in SCALARS:
        return Counter()
    root, path = _path(node)
    if isinstance(root, Ident):
        return Counter({part + path: times for part, times in variables.get(root.name, Extent()).items()})
    return sum((extent(child, variables) for child in children(node)), Counter())


def charge(call: Call, variables: Mapping[str, Extent]) -> Extent:
    """Milliseconds by part of the payload, if that part were the worst 1 MiB: measured and rounded up."""
    extents = [extent(operand, variables) for operand in call.operands]
    match call.function:
        case "_==_" | "_!=_":  # values of different sizes are unequal, so the smaller one decides
            return _times(1 if _has_text(call.operands) else _EQUALITY_MS, _smaller(extents))
        case "_<_" | "_<=_" | "_>_" | "_>=_" | "startsWith" | "endsWith":
            return _smaller(extents)
        case "_+_" if call.type not in SCALARS:
            return _times(1 if _has_text(call.operands) else _SUM_MS, extents[0] + extents[1])
        case "@in":
            return _times(_MEMBERSHIP_MS, extents[1])
        case "_[_]":
            return _times(_KEY_MS, extents[1])
        case "contains":
            return _times(_CONTAINS_MS * _needle_factor(call.operands[1], extents[1]), extents[0])
        case function:
            return _times(_SCAN_MS.get(function, 0), extents[0] if extents else Extent())


def total(charges: Iterable[Extent]) -> int:
    """The most that one payload can cost: all of its bytes may be in one field and the fields that contain it."""
    together = sum(charges, Extent())
    return max((_along(path, together) for path in together), default=0)


def _along(path: str, charges: Extent) -> int:
    return sum(cost for part, cost in charges.items() if f"{path}.".startswith(f"{part}."))


def _path(node: Expression) -> tuple[Expression, str]:
    if not isinstance(node, Select):
        return node, ""
    root, path = _path(node.operand)
    return root, f"{path}.{node.field}"


def _times(factor: int, extent: Extent) -> Extent:
    return Counter({part: times * factor for part, times in extent.items()})


def _smaller(extents: Sequence[Extent]) -> Extent:
    return min(extents, key=lambda extent: extent.total())


def _has_text(operands: Iterable[Expression]) -> bool:
    return any(operand.type in {"string", "bytes"} for operand in operands)


def _needle_factor(needle: Expression, size: Extent) -> int:
    length = len(needle.value) if isinstance(needle, Const) and isinstance(needle.value, str) else 0
    return 1 + length // _NEEDLE_LENGTH + size.total() * ITERATIONS
