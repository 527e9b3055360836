"""What fuzzers have found so far holds its target's property; `make fuzz` looks for more."""

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

CORPORA = Path(__file__).with_name("corpus")


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_of_a_corpus_has_the_property_of_its_target(name: str) -> None:
    inputs = sorted((CORPORA / name).iterdir())

    with TARGETS[name]() as target:
        for path in inputs:
            target(path.read_bytes())

    assert len(inputs) >= 5


def test_every_corpus_has_a_target() -> None:
    assert {path.name for path in CORPORA.iterdir()} == set(TARGETS)
