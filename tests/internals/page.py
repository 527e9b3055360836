"""The page docs/internals.md: the recorded request paths as call trees, and what a test reads back from it."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

from tests.internals.recorder import SOURCE, Call, Function

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "internals.md"
TITLES: Final = {
    "publish-to-subscriber": "From a publisher to a live subscriber",
    "publish-to-handler": "From a publisher to a handler",
    "outbox-to-handler": "From an outbox row to a handler",
    "journal-to-lake": "From the journal to the lake to a reader",
    "reconnect": "A browser comes back",
}
TREE: Final = r"(## {title}\n(?:(?!```|## )[^\n]*\n)*)```text\n(.*?)```\n"
SUMMARY: Final = re.compile(r"(\d+) functions in (\d+) files, at most (\d+) deep")
LINE: Final = re.compile(r" *(?P<name>\S+)  +(?P<file>\S+\.py)(  |$)")
WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class Size:
    """How much of the source a path goes through."""

    functions: int
    files: int
    depth: int


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """A path as it was recorded several times: what concerns others at that moment is in some of the recordings."""

    recordings: Sequence[Sequence[Call]]
    idle: Sequence[Call]

    def __add__(self, other: "RecordedPath") -> "RecordedPath":
        return RecordedPath([*self.recordings, *other.recordings], [*self.idle, *other.idle])

    @property
    def always(self) -> set[Function]:
        """The functions of every recording, but for those that the program also calls when it is idle."""
        return set.intersection(*map(functions_of, self.recordings)) - functions_of(self.idle)

    @property
    def ever(self) -> set[Function]:
        return set.union(*map(functions_of, self.recordings))

    @property
    def usual(self) -> list[Call]:
        """The calls of the functions that at least half of the recordings have, as the fullest one has them."""
        each = [function for calls in self.recordings for function in functions_of(calls)]
        kept = {function for function in self.ever if 2 * each.count(function) >= len(self.recordings)}
        fullest = max(self.recordings, key=lambda calls: len(functions_of(calls) & kept))
        return [call for call in fullest if call.function in kept]


def functions_of(calls: Iterable[Call]) -> set[Function]:
    return {call.function for call in calls}


def write(paths: dict[str, RecordedPath]) -> None:
    """Puts recorded trees onto the page, each under its heading."""
    text = PAGE.read_text()
    for name, path in paths.items():
        block = f"```text\n{tree(path.usual)}\n```\n"
        text, count = re.subn(TREE.format(title=re.escape(TITLES[name])), partial(_with_block, block), text, flags=re.S)
        if count != 1:
            raise SystemExit(f"{PAGE.name} has no heading {TITLES[name]!r} with a block of text below it")
    PAGE.write_text(text)


def _with_block(block: str, found: re.Match[str]) -> str:
    return found[1] + block


def tree(calls: Sequence[Call]) -> str:
    """A summary, then each function below the function that called it first."""
    names = sorted({call.function for call in calls}, key=lambda function: function.file)
    depth = max(call.depth for call in calls)
    summary = f"{len(names)} functions in {len({each.file for each in names})} files, at most {depth} deep"
    return "\n".join([summary, "", *lines(calls, None, 0)])


def lines(calls: Sequence[Call], caller: Function | None, depth: int) -> Iterator[str]:
    known = functions_of(calls)
    for call in calls:
        if call.caller == caller or (caller is None and call.caller not in known):
            function = call.function
            head = f"{'  ' * depth}{function.name}  {function.file}"
            yield shortened(f"{head}  {does(function)}".rstrip())
            yield from lines(calls, function, depth + 1)


def shortened(line: str) -> str:
    """The line, cut between two words if it is too long."""
    return line if len(line) <= WIDTH else line[: WIDTH - 1].rpartition(" ")[0] + " …"


def read(name: str) -> tuple[set[Function], Size]:
    """The functions that the page lists for a path, and the size that it states."""
    found = re.search(TREE.format(title=re.escape(TITLES[name])), PAGE.read_text(), re.S)
    assert found is not None, f"{PAGE.name} has no tree for {name}"
    summary, *listed = filter(None, found[2].splitlines())
    stated = SUMMARY.fullmatch(summary)
    assert stated is not None, summary
    functions = {Function(line["file"], line["name"]) for line in map(LINE.match, listed) if line is not None}
    return functions, Size(*map(int, stated.groups()))


def does(function: Function) -> str:
    """The first line of a function's docstring."""
    return docstrings(function.file).get(function.name, "")


@cache
def docstrings(file: str) -> dict[str, str]:
    """The first lines of all docstrings of a module, by qualified name."""
    found: dict[str, str] = {}

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{prefix}{child.name}"
                found[inner] = (ast.get_docstring(child) or "").partition("\n")[0]
                inner += "."
            visit(child, inner)

    visit(ast.parse(Path(SOURCE, file).read_text()), "")
    return found
