"""How long a call in a predicate could take, should an entry's payload be as large and as awkward as it may be."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tape.core.predicate.ast import Call, Const, Expression, Ident, Select, children

Extent = Counter[str]
"""Which parts of the payload a value may hold, and how often each is gone through; empty for what is small anyway."""

ITERATIONS = 10_000  # the CEL runtime gives up after these, counted over the whole evaluation
SCALARS = frozenset({"bool", "int", "uint", "double", "null", "timestamp", "duration", "type"})
UNBOUNDED: Mapping[str, Extent] = {name: Counter({name: 1}) for name in ("entry.payload", "entry.prev_value_json")}

_EQUALITY_MS = 25
_SUM_MS = 25
_MEMBERSHIP_MS = 12
_KEY_MS = 3
_CONTAINS_MS = 6
_NEEDLE_LENGTH = 256  # a search takes time in proportion to what it looks for, noticeably from here on
_CONVERSIONS = ("int", "uint", "double", "string", "bytes", "bool", "timestamp")
_SCAN_MS = {"matches": 4, "size": 1, "duration": 10} | dict.fromkeys(_CONVERSIONS, 2)


def extent(node: Expression, variables: Mapping[str, Extent]) -> Extent:
    """What of the payload a value may hold; different fields are different parts of it."""
    if node.type in SCALARS:
        return Counter()
    root, path = _path(node)
    if isinstance(root, Ident):
        return Counter({part + path: times for part, times in variables.get(root.name, Extent()).items()})
    return sum((extent(child, variables) for child in children(node)), Counter())


def charge(call: Call, variables: Mapping[str, Extent]) -> Extent:
    """Milliseconds by part of the payload, if that part were 1 MiB of the worst: measured figures, rounded up."""
    extents = [extent(operand, variables) for operand in call.operands]
    match call.function:
        case "_==_" | "_!=_":  # unequal sizes are unequal values, so the smaller one decides
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
    """The most that one payload can cost: all of its size may lie in one field, and in what contains that field."""
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
