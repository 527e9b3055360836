"""Matches a subject against many patterns at once; the cost depends on shared segments, not on their number."""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from tape.core.subject import ONE, Pattern

T = TypeVar("T", bound=Hashable)


class Trie(Generic[T]):
    """A set of (pattern, value) pairs."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, pattern: Pattern, value: T) -> None:
        node = self._root
        for segment in pattern.head:
            node = node.children.setdefault(segment, _Node())
        values = node.values(pattern)
        self._size += value not in values
        values[value] = None

    def discard(self, pattern: Pattern, value: T) -> None:
        """Removes a pair if it is there."""
        path = self._path(pattern)
        if len(path) <= len(pattern.head) or value not in path[-1].values(pattern):
            return
        del path[-1].values(pattern)[value]
        self._size -= 1
        _prune(path, pattern.head)

    def match(self, subject: str) -> list[T]:
        """The values whose patterns match a subject; a value added with several patterns may come several times."""
        found: list[T] = []
        _collect(self._root, subject[1:].split("/"), 0, found)
        return found

    def _path(self, pattern: Pattern) -> "list[_Node[T]]":
        path = [self._root]
        for segment in pattern.head:
            if segment not in path[-1].children:
                break
            path.append(path[-1].children[segment])
        return path


class _Node(Generic[T]):
    __slots__ = ("children", "here", "rest")

    def __init__(self) -> None:
        self.children: dict[str, _Node[T]] = {}
        self.here: dict[T, None] = {}  # an ordered set
        self.rest: dict[T, None] = {}

    def __bool__(self) -> bool:
        return bool(self.children or self.here or self.rest)

    def values(self, pattern: Pattern) -> dict[T, None]:
        return self.rest if pattern.is_open else self.here


def _collect(node: _Node[T], segments: Sequence[str], depth: int, found: list[T]) -> None:
    if node.rest:
        found.extend(node.rest)
    if depth == len(segments):
        found.extend(node.here)
        return
    if (child := node.children.get(segments[depth])) is not None:
        _collect(child, segments, depth + 1, found)
    if (child := node.children.get(ONE)) is not None:
        _collect(child, segments, depth + 1, found)


def _prune(path: "Sequence[_Node[T]]", segments: Sequence[str]) -> None:
    for parent, segment in zip(reversed(path[:-1]), reversed(segments), strict=True):
        if parent.children[segment]:
            return
        del parent.children[segment]
