"""Refuses checked predicates that an entry could make slow or large.

The CEL runtime stops after 10,000 iterations but limits neither the bytes nor the steps of one; its `map` and `filter`
copy the list at every step (10,000 elements: 2 s and 1.5 GB), and it compiles a regular expression at every call.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tape.core.errors import UsageError
from tape.core.predicate import cost, regex
from tape.core.predicate.ast import Call, Comprehension, Const, CreateList, CreateMap, Expression, children, descend
from tape.core.predicate.cost import Extent

MAX_TEXT_BYTES = 4096
MAX_DEPTH = 32
MAX_NODES = 256
MAX_LOOP_NODES = 48
MAX_COST_MS = 50
MAX_REGEX_BYTES = 256
MAX_REGEX_WEIGHT = 64

_REGEX_IN_LOOP = 4
_ZONE_PARTS = "FullYear Month Date DayOfMonth DayOfWeek DayOfYear Hours Minutes Seconds Milliseconds"
_LITERAL_ONLY = frozenset({"matches"} | {f"get{part}" for part in _ZONE_PARTS.split()})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeContext:
    """A node with its depth, whether it runs for every element, and what the variables may hold there."""

    node: Expression
    depth: int = 1
    in_loop: bool = False
    variables: Mapping[str, Extent]

    def below(self) -> "Iterator[NodeContext]":
        """This place and all places below it."""
        yield self
        for child in children(self.node):
            yield from self._enter(child).below()

    def _enter(self, child: Expression) -> "NodeContext":
        node, inner = self.node, replace(self, node=child, depth=self.depth + 1)
        if isinstance(node, Comprehension) and any(child is part for part in node.body):
            return replace(inner, in_loop=True, variables=self._inside(node))
        return inner

    def _inside(self, loop: Comprehension) -> dict[str, Extent]:
        """The elements together are as large as the range; any other value is read again at every iteration."""
        times = len(loop.range.elements) if isinstance(loop.range, CreateList) else cost.ITERATIONS
        again = {
            name: Extent({part: size * times for part, size in held.items()}) for name, held in self.variables.items()
        }
        return again | {loop.variable: cost.extent(loop.range, self.variables), loop.accumulator: Extent()}


def check(root: Expression) -> None:
    """Raises a `UsageError` with the limit and the position if the expression could be slow or large."""
    places = tuple(NodeContext(node=root, variables=cost.UNBOUNDED).below())
    _check_size(places)
    for place in places:
        _refuse_nesting(place)
        _refuse_building(place)
        _require_literals(place)
    _check_regexes(places)
    _check_cost(places)


def regexes(root: Expression) -> Iterator[Const]:
    """Every pattern given to `matches`."""
    return (pattern for node in descend(root) for pattern in _pattern(node))


def refusal(position: str, reason: str) -> UsageError:
    """The error every refused predicate gets."""
    return UsageError(f"predicate at {position}: {reason}")


def _check_size(places: tuple[NodeContext, ...]) -> None:
    if len(places) > MAX_NODES:
        raise UsageError(f"predicate has {len(places)} nodes, the limit is {MAX_NODES}; split it in two")
    deepest = max(places, key=lambda place: place.depth)
    if deepest.depth > MAX_DEPTH:
        raise refusal(deepest.node.position, f"nested {deepest.depth} levels deep, the limit is {MAX_DEPTH}")


def _refuse_nesting(place: NodeContext) -> None:
    if not isinstance(place.node, Comprehension):
        return
    if place.in_loop:
        raise refusal(place.node.position, "a comprehension inside another one is not allowed")
    size = sum(1 for part in place.node.body for _ in descend(part))
    if size > MAX_LOOP_NODES:
        raise refusal(place.node.position, f"{size} nodes run for every element, the limit is {MAX_LOOP_NODES}")


def _refuse_building(place: NodeContext) -> None:
    node = place.node
    if not place.in_loop:
        return
    if isinstance(node, Call) and node.function == "_+_" and node.type not in cost.SCALARS:
        raise refusal(
            node.position,
            "a string or a list could grow inside a comprehension (map and filter always build a list);"
            " use all, exists or exists_one, and int() or double() in sums",
        )
    if isinstance(node, CreateList | CreateMap) and not _is_literal(*children(node)):
        raise refusal(node.position, "a list or map inside a comprehension may hold literals only")


def _require_literals(place: NodeContext) -> None:
    node = place.node
    if isinstance(node, Call) and node.function in _LITERAL_ONLY and not _is_literal(*node.operands[1:]):
        raise refusal(node.position, f"{node.function} takes a literal only, so that it can be checked now")


def _check_regexes(places: Iterable[NodeContext]) -> None:
    weight = 0
    for place in places:
        for pattern in _pattern(place.node):
            weight += _regex_weight(pattern) * (_REGEX_IN_LOOP if place.in_loop else 1)
            if weight > MAX_REGEX_WEIGHT:
                raise refusal(
                    pattern.position,
                    f"regular expressions come to {weight} steps with repetitions written out"
                    f" ({_REGEX_IN_LOOP}-fold inside a comprehension), the limit is {MAX_REGEX_WEIGHT}",
                )


def _regex_weight(pattern: Const) -> int:
    text = str(pattern.value)
    size = len(text.encode())
    if size > MAX_REGEX_BYTES:
        raise refusal(pattern.position, f"a regular expression of {size} bytes, the limit is {MAX_REGEX_BYTES}")
    return regex.weight(text)


def _check_cost(places: Iterable[NodeContext]) -> None:
    calls = [(node, cost.charge(node, place.variables)) for place in places if isinstance(node := place.node, Call)]
    total = cost.total(charge for _, charge in calls)
    if total > MAX_COST_MS:
        worst, _ = max(calls, key=lambda call: call[1].total())
        raise refusal(
            worst.position,
            f"a payload of 1 MiB could take {total:,} ms, most of it in {worst.function!r}, the limit is {MAX_COST_MS};"
            " compare with literals, or say what you expect with string(), int() or double()",
        )


def _pattern(node: Expression) -> Iterator[Const]:
    if isinstance(node, Call) and node.function == "matches" and isinstance(node.operands[1], Const):
        yield node.operands[1]


def _is_literal(*nodes: Expression) -> bool:
    return all(isinstance(node, Const) for node in nodes)
