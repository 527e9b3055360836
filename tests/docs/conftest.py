"""What tests of the documentation share: the built site, and a reader's session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.session import Session
from tools.docs.site import build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The folder of the site, and its dead links."""
    folder = tmp_path_factory.mktemp("site") / "docs"
    return folder, build(folder)


@pytest.fixture(scope="session")
def site(built: tuple[Path, list[str]]) -> Path:
    return built[0]


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    session = Session(tmp_path, request.getfixturevalue)
    yield session
    session.end()
