"""The bill of materials: everything an installation brings, as it is locked."""

import re
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tools.sbom import document, parse

LOCK = (ROOT / "requirements" / "dev.lock").read_text()


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    return document(LOCK, "1.2.3")


def test_every_line_of_the_lock_is_understood() -> None:
    assert len(list(parse(LOCK))) == len(re.findall(r"^\S+==", LOCK, re.MULTILINE))


def test_the_bill_names_what_users_get_and_not_what_we_work_with(bill: dict[str, Any]) -> None:
    names = {each["name"] for each in bill["components"]}

    assert {"anyio", "click", "idna", "msgspec", "pyspark", "py4j"} <= names
    assert names & {"pytest", "mypy", "ruff", "playwright", "hypothesis"} == set()


def test_every_component_has_its_version_its_address_and_its_hashes(bill: dict[str, Any]) -> None:
    assert bill["components"]
    for each in bill["components"]:
        assert each["purl"] == each["bom-ref"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert each["hashes"] and all(re.fullmatch("[0-9a-f]{64}", one["content"]) for one in each["hashes"])


def test_whatever_depends_and_is_depended_on_is_a_component(bill: dict[str, Any]) -> None:
    known = {each["bom-ref"] for each in bill["components"]} | {"pkg:pypi/tape-bus@1.2.3"}
    graph = {each["ref"]: set(each["dependsOn"]) for each in bill["dependencies"]}

    assert graph.keys() == known
    assert set().union(*graph.values()) == known - {"pkg:pypi/tape-bus@1.2.3"}


def test_the_same_lock_gives_the_same_bill(bill: dict[str, Any]) -> None:
    assert document(LOCK, "1.2.3") == bill
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
