"""The public names of `tape.outbox`, and the imports they must not cause."""

import subprocess
import sys

import pytest

import tape.outbox

DRIVERS = ["asyncpg", "psycopg", "pydantic", "sqlalchemy", "sqlite3"]


def test_all_is_sorted() -> None:
    assert list(tape.outbox.__all__) == sorted(tape.outbox.__all__)


@pytest.mark.parametrize("name", tape.outbox.__all__)
def test_every_listed_name_is_there(name: str) -> None:
    assert getattr(tape.outbox, name) is not None


def test_publishing_loads_no_driver() -> None:
    program = "import sys, tape.outbox as o; o.publish; o.OutboxEvent; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert set(DRIVERS) & set(done.stdout.split()) == set()
