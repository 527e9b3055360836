"""Processes that meet while a journal is made: each of them gets it, whole."""

import time
from random import Random

import pytest

from tests.conftest import Scale
from tests.patience import PATIENCE_S
from tests.process import history, saying
from tests.process.crew import Crew
from tests.process.log import now_ns

FILES = 60
OPENERS = 4
UNFINISHED = 3


def test_processes_that_make_a_journal_at_the_same_time_all_get_it(crew: Crew, scale: Scale) -> None:
    start_ns = now_ns() + 500_000_000

    openers = [crew.start("opener", crew.folder, scale(FILES), start_ns) for _ in range(OPENERS)]

    for opener in openers:
        opener.finish(within_s=PATIENCE_S + scale(FILES))


def test_a_journal_that_was_killed_while_it_was_made_is_made_by_the_next(
    tmp_path_factory: pytest.TempPathFactory, scale: Scale
) -> None:
    crews = [Crew(tmp_path_factory.mktemp("making")) for _ in range(scale(UNFINISHED))]

    heads = [make_in_two_lives(crew) for crew in crews]

    assert heads == [saying.size("writer", 1, 50)] * len(crews)


def make_in_two_lives(crew: Crew) -> int:
    """Where the journal stands when its first writer was killed around the time it made the file."""
    options = (crew.url, crew.log("writer"), "--requests", 1)
    with crew:
        first = crew.start("writer", *options)
        crew.wait(crew.journal.exists, "the file is there")
        time.sleep(Random().uniform(0, 0.03))
        first.kill()
        crew.start("writer", *options).finish()
        return history.head(crew.journal)
