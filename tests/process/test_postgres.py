"""Eight writer processes on one Postgres that append in every way: one scenario, one test per invariant."""

from collections.abc import Iterator

import pytest

from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.process import history
from tests.process.history import History
from tests.process.log import Op
from tests.process.processes import Processes
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
def recorded(
    tmp_path_factory: pytest.TempPathFactory, postgres_databases: Databases, scale: Scale
) -> Iterator[History]:
    """Writers lock rows, pause, roll back and contend for cells, while another database has an open transaction."""
    with postgres_databases.database() as url, postgres_databases.database() as elsewhere:
        with Processes(tmp_path_factory.mktemp("writers"), url=url) as processes:
            databases.execute(url, SCRATCH)
            processes.start("open_transaction", elsewhere, processes.log("open_transaction"))
            processes.wait_for_line("open_transaction")
            processes.start("tail", processes.url, processes.log("seen"))
            options = ("--requests", scale(REQUESTS), "--most", MOST, "--pause-ms", 20)
            writers = [
                processes.start("mixed_writer", processes.url, processes.log(name), *options) for name in WRITERS
            ]
            for clerk in writers:
                clerk.finish(within_s=DEADLINE_S + scale(REQUESTS))
            processes.wait_for_tail()
            recorded = history.collect(processes.folder, WRITERS, MOST, url)
        yield recorded


def test_the_scenario_had_retries_and_answers(recorded: History) -> None:
    assert {"RolledBack", "VersionConflict"} <= refusals(recorded).keys()


def test_no_writer_deadlocked_or_timed_out(recorded: History) -> None:
    assert refusals(recorded).keys() <= {"RolledBack", "VersionConflict"}


def test_p1_every_acknowledged_event_is_at_its_acknowledged_position(recorded: History) -> None:
    assert recorded.anomalies("P1") == []


def test_p2_a_request_is_all_there_and_in_one_piece(recorded: History) -> None:
    assert recorded.anomalies("P2") == []


def test_p3_a_request_is_there_once(recorded: History) -> None:
    assert recorded.anomalies("P3") == []


def test_p4_positions_are_dense_in_the_journal_and_in_each_run(recorded: History) -> None:
    assert recorded.anomalies("P4", "P6") == []


def test_p5_nothing_arrives_below_a_position_the_tail_has_seen(recorded: History) -> None:
    assert recorded.anomalies("P5") == []


def test_p5_the_tail_sees_every_position_once(recorded: History) -> None:
    assert recorded.anomalies("P5", "P6") == []


def refusals(recorded: History) -> dict[str, int]:
    """How often writers were refused, by reason."""
    ops: list[Op] = [op for ops in recorded.ops.values() for op in ops if op.what in ("fail", "unknown")]
    reasons = [op.reason for op in ops]
    return {reason: reasons.count(reason) for reason in set(reasons)}
