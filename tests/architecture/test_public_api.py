"""What `import tape` offers, and what it must not cost."""

import subprocess
import sys
from types import ModuleType

import pytest

import tape
import tape.broker

HEAVY = [
    "asyncpg",
    "cel_expr_python",
    "click",
    "duckdb",
    "grpc",
    "opentelemetry",
    "pyspark",
    "redis",
    "sqlite3",
    "uvicorn",
]


def test_all_is_sorted() -> None:
    assert list(tape.__all__) == sorted(tape.__all__)


def test_all_is_complete() -> None:
    public = {name for name, value in vars(tape).items() if is_public(name, value)}

    assert public <= set(tape.__all__)


@pytest.mark.parametrize("name", tape.__all__)
def test_every_listed_name_is_there(name: str) -> None:
    assert getattr(tape, name) is not None


@pytest.mark.parametrize("name", HEAVY)
def test_importing_tape_loads_no_driver_and_no_server(name: str, loaded: frozenset[str]) -> None:
    assert name not in loaded


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules that a fresh Python holds after `import tape`."""
    return modules_after("import tape")


@pytest.fixture(scope="module")
def loaded_with_brokers() -> frozenset[str]:
    """Those it holds after `import tape.broker`, and after a broker in memory was made."""
    return modules_after("import tape.broker; tape.broker.make_broker()")


@pytest.mark.parametrize("name", sorted({*HEAVY} - {"sqlite3"}))
def test_brokers_load_no_driver_but_the_one_they_use(name: str, loaded_with_brokers: frozenset[str]) -> None:
    assert name not in loaded_with_brokers


def test_all_of_the_broker_is_sorted_and_complete() -> None:
    public = {name for name, value in vars(tape.broker).items() if is_public(name, value)}
    inside = {"Broker", "Settings", "open_backend", "open_store"}

    assert list(tape.broker.__all__) == sorted(tape.broker.__all__)
    assert public - inside <= set(tape.broker.__all__)


def modules_after(statements: str) -> frozenset[str]:
    program = f"import sys; {statements}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def is_public(name: str, value: object) -> bool:
    return not name.startswith("_") and not isinstance(value, ModuleType) and is_ours(value)


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("tape")
