"""The model of the scaling page predicts the measurements that it was not fitted to."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

import pytest

from tests.architecture.tree import ROOT

ROWS = json.loads((ROOT / "bench" / "latest.json").read_text())["rows"]
WITHIN = 0.35  # a shared machine's figures move by as much from one hour to the next


@pytest.fixture(scope="module")
def model() -> ModuleType:
    spec = spec_from_file_location("model", ROOT / "docs" / "scaling" / "model.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("area", ["sqlite", "postgres"])
def test_the_model_predicts_the_point_it_was_not_fitted_to(model: ModuleType, area: str) -> None:
    one, other, held_back = model.measured(ROWS, area)

    predicted = model.fitted(one, other).per_second(held_back.group)

    assert predicted == pytest.approx(held_back.per_second, rel=WITHIN)


@pytest.mark.parametrize("area", ["sqlite", "postgres"])
def test_the_simulation_agrees_with_the_formula(model: ModuleType, area: str) -> None:
    journal = model.fitted(*model.measured(ROWS, area)[:2])

    assert model.simulated(journal, 1, 64) == pytest.approx(journal.per_second(64), rel=0.05)


def test_only_another_journal_adds_appends(model: ModuleType) -> None:
    journal = model.fitted(*model.measured(ROWS, "postgres")[:2])

    assert model.simulated(journal, 1, 100_000) <= 1 / journal.each
    assert model.simulated(journal, 2, 100_000) > 1.5 * model.simulated(journal, 1, 100_000)
