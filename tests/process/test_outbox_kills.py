"""SIGKILL of publishers, listeners and Postgres, in rounds: one scenario, one test per invariant."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as numbers
from random import Random

import pytest

from tape.checker.invariant_result import InvariantResult
from tape.checker.lines import AnyLine, EffectLine, ReadLine
from tape.outbox import migrate
from tests.conftest import Scale
from tests.process import recorder
from tests.process.processes import Child, Processes
from tests.servers.databases import apart, execute, fetch
from tests.servers.postgres import PostgresServer

ROUNDS = 3
LIVES = numbers(1)
TABLES = (
    "CREATE TABLE orders (n bigint NOT NULL)",
    "CREATE TABLE effects (n bigint NOT NULL, handler text NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The state of the database afterwards."""

    committed: set[int]
    once: Counter[int]
    itself: Counter[int]
    statuses: list[tuple[str, int]]
    findings: dict[str, InvariantResult]


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, scale: Scale
) -> Iterator[Recorded]:
    """A business whose processes, listeners and server die in turns, and which all come back."""
    with postgres_server.database() as url, Processes(tmp_path_factory.mktemp("outbox"), url=url) as processes:
        apart(migrate, url)
        for table in TABLES:
            execute(url, table)
        started = {name: [start(processes, name) for _ in range(2)] for name in ("outbox_business", "outbox_worker")}
        for _ in range(scale(ROUNDS)):
            for name, children in started.items():
                wait_for_more(processes, url)
                kill_one(processes, name, children)
            wait_for_more(processes, url)
            postgres_server.kill_hard()
            postgres_server.restart()
        for business in started["outbox_business"]:
            business.kill()
        processes.wait(lambda: count(url, OPEN) == 0, "every row has ended")
        yield collected(url, recorder.merged(processes.folder.glob("*.jsonl")))


OPEN = "SELECT count(*) FROM core.outbox WHERE status IN ('pending', 'in_flight')"
HANDLED = "SELECT count(*) FROM effects"


def test_the_scenario_had_retries_and_answers(recorded: Recorded) -> None:

    assert len(recorded.committed) > 50


def test_p14_what_was_handled_is_exactly_what_was_committed(recorded: Recorded) -> None:
    assert set(recorded.once) == recorded.committed and set(recorded.itself) == recorded.committed


def test_p14_each_effect_in_the_handlers_transaction_is_there_once(recorded: Recorded) -> None:
    assert recorder.anomalies(recorded.findings, "P14", "P15") == []


def test_no_row_is_stranded_or_dead(recorded: Recorded) -> None:
    assert recorded.statuses == [("delivered", len(recorded.committed))]


def start(processes: Processes, name: str) -> Child:
    log = processes.log(f"{name}{next(LIVES)}")
    return processes.start(name, processes.url, *(["12"] if name == "outbox_business" else []), log)


def kill_one(processes: Processes, name: str, children: list[Child]) -> None:
    chance = Random()
    time.sleep(chance.uniform(0, 0.1))
    place = chance.randrange(len(children))
    children[place].kill()
    children[place] = start(processes, name)


def wait_for_more(processes: Processes, url: str) -> None:
    before = count(url, HANDLED)
    processes.wait(lambda: count(url, HANDLED) > before + 20, "more is handled")


def count(url: str, statement: str) -> int:
    ((found,),) = fetch(url, statement)
    return int(found)


def collected(url: str, lines: list[AnyLine]) -> Recorded:
    effects = fetch(url, "SELECT n, handler FROM effects")
    lines += [
        ReadLine(client="test", step="invoke", of="effects"),
        *(EffectLine(client="test", handler=handler, event_id=str(n)) for n, handler in effects if handler == "once"),
        ReadLine(client="test", step="ok", of="effects", is_final=True),
    ]
    return Recorded(
        committed={n for (n,) in fetch(url, "SELECT n FROM orders")},
        once=Counter(n for n, handler in effects if handler == "once"),
        itself=Counter(n for n, handler in effects if handler == "itself"),
        statuses=[(status, n) for status, n in fetch(url, "SELECT status, count(*) FROM core.outbox GROUP BY 1")],
        findings=recorder.findings(lines),
    )
