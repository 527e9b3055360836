"""The pages that use Spark, in a file of their own: `tests/parallel.py` runs them with the other tests of Spark."""

from pathlib import Path

import pytest

from tests.docs.blocks import WITH_SPARK, blocks
from tests.docs.session import Session
from tools.docs.site import place


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("path", WITH_SPARK, ids=str)
def test_a_reader_of_a_page_with_spark_gets_what_it_shows(path: Path, site: Path, session: Session) -> None:
    session.follow(blocks((site / place(path)).read_text()))
