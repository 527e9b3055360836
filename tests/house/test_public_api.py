"""What `import tape` offers, and what it must not cost."""

import subprocess
import sys
from types import ModuleType

import pytest

import tape

HEAVY = ["asyncpg", "cel_expr_python", "click", "grpc", "opentelemetry", "pyspark", "redis", "sqlite3", "uvicorn"]


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
    program = "import sys, tape; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def is_public(name: str, value: object) -> bool:
    return not name.startswith("_") and not isinstance(value, ModuleType) and is_ours(value)


def is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith("tape")
