"""Producers: named where they are written, known where their module is loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tape
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Entry
from tape.core.producer import Producer
from tape.runs.producers import Producers, load

SOURCE = """
import tape

@tape.producer("one")
def first(prefix, mutation, n_turns, sink):
    sink.append("one")

@tape.producer("two")
def second(prefix, mutation, n_turns, sink):
    sink.append("two")

again = second

def plain(prefix, mutation, n_turns, sink):
    sink.append("plain")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"played_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_named_loop_is_still_the_loop() -> None:
    calls: list[object] = []

    @tape.producer("mine")
    def loop(prefix: Sequence[Entry], mutation: JsonValue, n_turns: int, sink: Any) -> None:
        calls.append((prefix, mutation, n_turns, sink))

    loop((), {"a": 1}, 3, None)  # type: ignore[arg-type]

    assert loop.name == "mine"
    assert calls == [((), {"a": 1}, 3, None)]


@pytest.mark.parametrize("name", ["", "a b", "-a", None, print])
def test_a_producer_has_a_name(name: Any) -> None:
    with pytest.raises(UsageError, match="a producer has a name"):
        tape.producer(name)


def test_a_module_gives_the_producers_it_holds_once_each(module: str) -> None:
    assert [each.name for each in load(module)] == ["one", "two"]


@pytest.mark.parametrize(("attribute", "name"), [("second", "two"), ("plain", "plain")])
def test_one_producer_of_a_module_is_named_by_its_attribute(module: str, attribute: str, name: str) -> None:
    calls: list[object] = []

    (found,) = load(f"{module}:{attribute}")
    found((), None, 1, calls)  # type: ignore[arg-type]

    assert (found.name, calls) == (name, [name])


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("no_such_module", "module 'no_such_module' cannot be loaded: ModuleNotFoundError"),
        ("json", "module 'json' holds no producer"),
        ("json:nothing", "module 'json' has no producer 'nothing'"),
        ("", "cannot be loaded"),
    ],
)
def test_what_is_no_producer_is_refused(place: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load(place)


def test_two_producers_of_one_name_are_a_mistake() -> None:
    with pytest.raises(UsageError, match="two producers are called 'a'"):
        Producers([Producer("a", lambda *_: None), Producer("a", lambda *_: None)])


def test_an_unknown_producer_is_refused_with_the_known_names() -> None:
    known = Producers([Producer("b", lambda *_: None), Producer("a", lambda *_: None)])

    with pytest.raises(UsageError, match="there is no producer 'c' here; there are 'a', 'b'"):
        known.find("c")
