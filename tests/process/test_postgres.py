"""Writers in eight processes on one Postgres, in every way there is: one scenario, judged law by law."""

from collections.abc import Iterator

import pytest

from tests.conftest import Scale
from tests.patience import PATIENCE_S
from tests.process import history
from tests.process.crew import Crew
from tests.process.history import History
from tests.process.log import Op
from tests.servers import databases
from tests.servers.databases import Databases

WRITERS = [f"clerk{number}" for number in range(8)]
REQUESTS = 60
MOST = 8

SCRATCH = """
CREATE TABLE scratch (n int PRIMARY KEY, times int NOT NULL DEFAULT 0);
INSERT INTO scratch (n) SELECT generate_series(0, 3);
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, postgres_databases: Databases, scale: Scale) -> Iterator[History]:
    """The history of clerks who lock rows, pause, think better of it and contend for cells, beside a stranger."""
    with postgres_databases.database() as url, postgres_databases.database() as elsewhere:
        with Crew(tmp_path_factory.mktemp("clerks"), url=url) as crew:
            databases.execute(url, SCRATCH)
            crew.start("stranger", elsewhere, crew.log("stranger"))
            crew.wait_for_line("stranger")
            crew.start("tail", crew.url, crew.log("seen"))
            options = ("--requests", scale(REQUESTS), "--most", MOST, "--pause-ms", 20)
            clerks = [crew.start("clerk", crew.url, crew.log(name), *options) for name in WRITERS]
            for clerk in clerks:
                clerk.finish(within_s=PATIENCE_S + scale(REQUESTS))
            crew.wait_for_tail()
            told = history.collect(crew.folder, WRITERS, MOST, url)
        print(f"{len(told.rows):,} entries, {len(told.acknowledged):,} answers, {refusals(told)}")
        yield told


def test_the_scenario_had_what_it_is_about(told: History) -> None:
    assert {"RolledBack", "VersionConflict"} <= refusals(told).keys()


def test_no_clerk_deadlocked_or_waited_in_vain(told: History) -> None:
    assert refusals(told).keys() <= {"RolledBack", "VersionConflict"}


def test_p1_everything_acknowledged_is_where_its_writer_was_told(told: History) -> None:
    assert told.lost() == []


def test_p2_a_request_is_all_there_and_in_one_piece(told: History) -> None:
    assert told.partial() == []


def test_p3_a_request_is_there_once(told: History) -> None:
    assert told.repeated() == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(told: History) -> None:
    assert told.holes() == []


def test_p5_nothing_arrives_below_a_position_the_tail_has_seen(told: History) -> None:
    assert told.late() == []


def test_p5_the_tail_sees_every_position_once(told: History) -> None:
    assert told.missed() == [] and told.seen_twice() == []


def refusals(told: History) -> dict[str, int]:
    """How often clerks were told no, by reason."""
    ops: list[Op] = [op for ops in told.ops.values() for op in ops if op.what in ("fail", "unknown")]
    reasons = [op.reason for op in ops]
    return {reason: reasons.count(reason) for reason in set(reasons)}
