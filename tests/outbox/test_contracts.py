"""Contracts of events: only compatible changes are accepted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pydantic
import pytest

from tape.core.errors import UsageError
from tape.outbox.contracts import Contract, ContractStatus, Snapshots, catalog, contracts_of

ADDRESS = {"street": str, "city": str}


def struct(required: dict[str, Any], optional: dict[str, Any] | None = None, name: str = "OrderPlaced") -> type:
    more = [(name, kind, None) for name, kind in (optional or {}).items()]
    made: type = msgspec.defstruct(name, [*required.items(), *more], kw_only=True)
    return made


def model(required: dict[str, Any], optional: dict[str, Any] | None = None, name: str = "OrderPlaced") -> type:
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in required.items()}
    fields |= {name: (kind, None) for name, kind in (optional or {}).items()}
    made: type = pydantic.create_model(name, **fields)
    return made


def contract(payload: type, version: int = 1) -> Contract:
    module = ModuleType("orders.contracts")
    vars(module).update(ORDER_PLACED_TYPE="orders.placed", ORDER_PLACED_VERSION=version, OrderPlaced=payload)
    (found,) = contracts_of(module)
    return found


libraries = pytest.mark.parametrize("made", [struct, model], ids=["msgspec", "pydantic"])
Made = Callable[..., type]


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path / "contracts")


def status(snapshots: Snapshots, now: Contract) -> ContractStatus:
    (check,) = snapshots.check([now])
    return check.status


@libraries
def test_a_contract_that_was_recorded_is_the_same(made: Made, snapshots: Snapshots) -> None:
    now = contract(made({"n": int}))

    assert status(snapshots, now) is ContractStatus.NEW
    snapshots.record(now)
    assert status(snapshots, now) is ContractStatus.SAME


@libraries
def test_a_field_may_be_added_with_a_new_version(made: Made, snapshots: Snapshots) -> None:
    snapshots.record(contract(made({"n": int})))
    more = made({"n": int, "total": float}, {"note": str | None})

    assert status(snapshots, contract(more, version=2)) is ContractStatus.ADDED
    assert status(snapshots, contract(more, version=1)) is ContractStatus.UNCOUNTED


@libraries
@pytest.mark.parametrize(
    ("required", "optional"),
    [({}, {}), ({"n": str}, {}), ({"n": int | str}, {}), ({}, {"n": int})],
    ids=["removed", "another type", "wider", "no longer required"],
)
def test_what_a_consumer_may_rely_on_is_not_taken_away(
    made: Made, required: dict[str, Any], optional: dict[str, Any], snapshots: Snapshots
) -> None:
    snapshots.record(contract(made({"n": int})))

    assert status(snapshots, contract(made(required, optional), version=2)) is ContractStatus.BROKEN


@libraries
def test_a_field_inside_a_field_counts_too(made: Made, snapshots: Snapshots) -> None:
    address: Any = made(ADDRESS, name="Address")
    less: Any = made({"street": str}, name="Address")
    snapshots.record(contract(made({"to": address, "all": list[address]})))

    (check,) = snapshots.check([contract(made({"to": less, "all": list[less]}), version=2)])

    assert check.status is ContractStatus.BROKEN
    assert set(check.reasons) >= {"$.to.city is gone", "$.all[].city is gone"}


def test_a_snapshot_without_a_contract_is_gone(snapshots: Snapshots) -> None:
    snapshots.record(contract(struct({"n": int})))

    assert [check.status for check in snapshots.check([])] == [ContractStatus.GONE]


def test_a_type_needs_its_version_and_its_payload() -> None:
    module = ModuleType("orders.contracts")
    vars(module).update(ORDER_PLACED_TYPE="orders.placed")

    with pytest.raises(UsageError, match="ORDER_PLACED_VERSION"):
        list(contracts_of(module))


def test_the_catalog_shows_every_field() -> None:
    @dataclass
    class OrderPlaced:
        """An order was placed."""

        n: int
        note: str | None = None

    page = catalog([contract(OrderPlaced)])

    assert "## orders.placed" in page and "An order was placed." in page
    assert "| n | integer | yes |" in page and "| note | any | no |" in page
