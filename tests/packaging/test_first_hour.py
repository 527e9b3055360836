"""A newcomer who installs what the tutorial names, and nothing else, gets to a first reaction of their own."""

import re
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.blocks import blocks
from tests.docs.session import Session
from tools.docs.site import Page, render

PAGES = ["tutorial.md", "how-to/durable-reactions.md", "how-to/outbox-in-a-service.md", "runbooks/replay-the-dead.md"]


def test_the_tutorial_names_the_extras_that_it_needs() -> None:
    introduction = (ROOT / "docs" / "tutorial.md").read_text().split("\n\n")[1]

    assert re.findall(r"`(cel|grpc|server|spark|sdk|postgres)`", introduction) == ["cel", "grpc", "server"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed_with_what_the_tutorial_installs(page: str, first_hour: Path, tmp_path: Path) -> None:
    text = (ROOT / "docs" / page).read_text()
    session = Session(tmp_path, pytest.fail, programs=first_hour)
    try:
        session.follow(blocks(render(Page(path=Path(page), text=text), {})))
    finally:
        session.end()
