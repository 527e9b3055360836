"""kill -9 of businesses, of listeners and of Postgres itself, in rounds: one scenario, judged law by law."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pytest

from tape.outbox import migrate
from tests.conftest import Scale
from tests.process.crew import Child, Crew
from tests.servers.databases import apart, execute, fetch
from tests.servers.postgres import PostgresServer

ROUNDS = 3
TABLES = (
    "CREATE TABLE orders (n bigint NOT NULL)",
    "CREATE TABLE effects (n bigint NOT NULL, handler text NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the database says afterwards."""

    committed: set[int]
    once: Counter[int]
    itself: Counter[int]
    statuses: list[tuple[str, int]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer, scale: Scale) -> Iterator[Told]:
    """A business whose processes, listeners and server die in turns, and which all come back."""
    with postgres_server.database() as url, Crew(tmp_path_factory.mktemp("outbox"), url=url) as crew:
        apart(migrate, url)
        for table in TABLES:
            execute(url, table)
        crews = {name: [start(crew, name) for _ in range(2)] for name in ("outbox_business", "outbox_worker")}
        for _ in range(scale(ROUNDS)):
            for name, children in crews.items():
                wait_for_more(crew, url)
                kill_one(crew, name, children)
            wait_for_more(crew, url)
            postgres_server.kill_hard()
            postgres_server.restart()
        for business in crews["outbox_business"]:
            business.kill()
        crew.wait(lambda: count(url, OPEN) == 0, "every row has ended")
        yield collected(url)


OPEN = "SELECT count(*) FROM core.outbox WHERE status IN ('pending', 'in_flight')"
HANDLED = "SELECT count(*) FROM effects"


def test_the_scenario_had_what_it_is_about(told: Told) -> None:
    print(f"{len(told.committed):,} transactions, {sum(told.itself.values()) - len(told.itself)} handled again")

    assert len(told.committed) > 50


def test_p14_what_was_handled_is_exactly_what_was_committed(told: Told) -> None:
    assert set(told.once) == told.committed and set(told.itself) == told.committed


def test_p14_each_effect_in_the_handlers_transaction_is_there_once(told: Told) -> None:
    assert [n for n, times in told.once.items() if times != 1] == []


def test_no_row_is_stranded_or_dead(told: Told) -> None:
    assert told.statuses == [("delivered", len(told.committed))]


def start(crew: Crew, name: str) -> Child:
    return crew.start(name, crew.url, *(["4"] if name == "outbox_business" else []))


def kill_one(crew: Crew, name: str, children: list[Child]) -> None:
    chance = Random()
    time.sleep(chance.uniform(0, 0.1))
    place = chance.randrange(len(children))
    children[place].kill()
    children[place] = start(crew, name)


def wait_for_more(crew: Crew, url: str) -> None:
    before = count(url, HANDLED)
    crew.wait(lambda: count(url, HANDLED) > before + 80, "more is handled")


def count(url: str, statement: str) -> int:
    ((found,),) = fetch(url, statement)
    return int(found)


def collected(url: str) -> Told:
    effects = fetch(url, "SELECT n, handler FROM effects")
    return Told(
        committed={n for (n,) in fetch(url, "SELECT n FROM orders")},
        once=Counter(n for n, handler in effects if handler == "once"),
        itself=Counter(n for n, handler in effects if handler == "itself"),
        statuses=[(status, n) for status, n in fetch(url, "SELECT status, count(*) FROM core.outbox GROUP BY 1")],
    )
