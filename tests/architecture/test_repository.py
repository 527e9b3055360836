"""What no file of the repository may say: where packages come from, or whose machine it was written on."""

import re

import pytest

from tests.architecture.tree import ROOT, texts

# A hash-locked file is the same from every index, so which one is used is each machine's own business.
REGISTRY_HOST = re.compile(r"\b(pypi\.org|pythonhosted\.org|registry\.npmjs\.org|repo1?\.maven\.(apache\.)?org)\b")
INDEX_SETTING = re.compile(r"^--(index-url|extra-index-url|find-links|trusted-host)\b", re.MULTILINE)
PRIVATE_PATH = re.compile(r"(^|[^a-zA-Z0-9_.])/(work|farm|root|home|Users)/", re.MULTILINE)


@pytest.mark.parametrize("secret", [REGISTRY_HOST, INDEX_SETTING, PRIVATE_PATH], ids=["registry", "index", "path"])
def test_no_file_knows_the_machine_it_was_written_on(secret: re.Pattern[str]) -> None:
    found = [f"{path.relative_to(ROOT)}: {match[0]!r}" for path, text in texts() for match in secret.finditer(text)]

    assert found == []


@pytest.mark.parametrize("lock", ["dev", "bench", "fuzz"])
def test_every_locked_package_has_a_hash(lock: str) -> None:
    entries = re.split(r"^(?=\S)", (ROOT / "requirements" / f"{lock}.lock").read_text(), flags=re.MULTILINE)

    unhashed = [entry for entry in entries if "==" in entry and "--hash=sha256:" not in entry]

    assert unhashed == []


def test_every_decision_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text()
    decisions = {path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}

    listed = set(re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", index))

    assert listed == decisions
