"""A class name means one thing: it is unique, but where backends, layers or surfaces implement the same noun."""

import ast
from collections import defaultdict

from tests.architecture.tree import PACKAGE, modules

# Stores implement a port and its parts; the SDK and HTTP have the nouns of the ledgers and of work again.
STORES = {"store"}
NOUNS = {"core", "matcher", "operations", "runs", "sdk", "server", "store"}
SHARED = {
    "Appender": {"bus", "store"},
    "ColdRuns": {"lake", "runs"},
    "Journal": {"bus", "core", "store"},
    "Searches": {"core", "lake"},
}


def test_a_class_name_is_used_once() -> None:
    found = {name: places for name, places in classes().items() if len(places) > 1 and not is_shared(name, places)}

    assert found == {}


def classes() -> dict[str, list[str]]:
    """The modules that define each public class."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    return found


def is_shared(name: str, places: list[str]) -> bool:
    packages = [place.partition("/")[0] for place in places]
    if set(packages) == STORES:
        return len({place.split("/")[1] for place in places}) == len(places)  # one for each backend
    return set(packages) <= SHARED.get(name, NOUNS)
