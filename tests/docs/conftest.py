"""The site, built once for all tests of the documentation."""

from pathlib import Path

import pytest

from tools.docs.site import build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of the site, and its dead links."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    return folder, build(folder)


@pytest.fixture(scope="session")
def site(built: tuple[Path, list[str]]) -> Path:
    return built[0]
