"""No lower layer calls a higher one through a list that the higher one adds itself to."""

import ast
from collections.abc import Iterator

from tests.architecture.tree import PACKAGE, modules

COLLECTIONS = {"WeakKeyDictionary", "WeakSet", "WeakValueDictionary", "defaultdict", "deque", "dict", "list", "set"}
CHANGES = {"add", "append", "appendleft", "extend", "insert", "setdefault", "update"}
KEPT = {
    "store/duckdb/connection.py: _CONFIG",  # settings, completed as the module is loaded
    "wire/message_mapping.py: _CODECS",  # mappings that were computed already
    "work/child_process.py: _RUNNING",  # the processes that it has started
    "work/handler_tasks.py: _DETACHED",  # the tasks that it no longer waits for
    "work/threads.py: _DETACHED",  # the threads that it no longer waits for
}


def test_no_module_keeps_a_collection_that_others_add_to() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}" for path in modules() for name in changed(ast.parse(path.read_text()))
    }

    assert found == KEPT


def changed(tree: ast.Module) -> Iterator[str]:
    """The collections of a module that its statements change after they were made."""
    names = {name for node in tree.body for name in collections(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if attr in CHANGES and name in names:
                yield name
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))]) if name in names:
                yield name


def collections(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_collection(value):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if is_collection(value):
            yield name


def is_collection(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return str(getattr(value.func, "id", getattr(value.func, "attr", ""))) in COLLECTIONS
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
