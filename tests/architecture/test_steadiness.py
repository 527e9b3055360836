"""No test fails because the machine is busy: none limits elapsed time, and no process is forked beside threads."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT

CLOCKS = {"monotonic", "perf_counter", "process_time", "current_time", "time_ns", "monotonic_ns"}
MEASURED = {"delay", "duration", "elapsed", "latency", "p50", "p95", "p99", "took", "worst"}
FORKING = {"preexec_fn", "user", "group", "extra_groups"}
MAY_MEASURE = {
    "tests/property/test_predicate.py",
    "tests/unit/core/test_predicate.py",
}  # they limit CPU time, to a minute
MAY_FORK = {"tests/server/forking_program.py"}  # the program whose forks are tested


def test_no_test_asserts_an_upper_bound_of_elapsed_time() -> None:
    found = [place for path, tree in trees("tests") for place in upper_bounds(path, tree) if path not in MAY_MEASURE]

    assert found == []


def test_no_process_is_started_by_a_fork() -> None:
    found = [place for path, tree in [*trees("src"), *trees("tests")] for place in forks(path, tree)]

    assert [place for place in found if place.partition(":")[0] not in MAY_FORK] == []


def trees(folder: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        if "bench" not in path.parts and not path.stem.endswith("_pb2"):
            yield str(Path(path).relative_to(ROOT)), ast.parse(path.read_text())


def upper_bounds(path: str, tree: ast.Module) -> Iterator[str]:
    """Assertions that a difference of two clock readings, or a value named like one, is below a limit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            for compared in ast.walk(node.test):
                if isinstance(compared, ast.Compare) and isinstance(compared.ops[0], ast.Lt | ast.LtE):
                    yield from (f"{path}:{node.lineno}" for part in ast.walk(compared.left) if is_elapsed(part))


def is_elapsed(node: ast.AST) -> bool:
    name = str(getattr(node, "attr", getattr(node, "id", "")))
    if name.removesuffix("_s").removesuffix("_ms") in MEASURED:
        return True
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and called(node.left) in CLOCKS


def forks(path: str, tree: ast.Module) -> Iterator[str]:
    """Calls of subprocess with which it forks, where it would otherwise use vfork."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) in ("Popen", "run"):
            yield from (f"{path}:{node.lineno}" for keyword in node.keywords if keyword.arg in FORKING)


def called(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))
