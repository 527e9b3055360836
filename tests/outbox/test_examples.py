"""The applications of examples/: committed events are handled once, rolled back ones never."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tape.cli.main import run
from tests.architecture.tree import ROOT
from tests.deadlines import DEADLINE_S
from tests.server.server import clean_environment
from tests.servers.process import free_port

EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="session")
def postgres_template() -> None:
    """The applications make their tables themselves."""


def surroundings(url: str) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(EXAMPLES)])
    return {**clean_environment(), "DATABASE_URL": url, "PYTHONPATH": paths, "PYTHONWARNINGS": "default"}


@contextmanager
def running(command: list[str], folder: Path, url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, env=surroundings(url), stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def eventually(ask: httpx.Client, path: str, wanted: object) -> None:
    deadline, answer = time.monotonic() + DEADLINE_S, "nothing"
    while time.monotonic() < deadline:
        try:
            response = ask.get(path)
            answer = response.text
            if response.status_code == 200 and response.json() == wanted:
                return
        except httpx.TransportError as error:
            answer = repr(error)
        time.sleep(0.05)
    raise AssertionError(answer)


def test_the_fastapi_shop_writes_an_invoice_for_each_order_that_was_committed(
    postgres_url: str, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "uvicorn", "fastapi_outbox:app", "--port", str(port)]
    with (
        running(command, tmp_path, postgres_url, log) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http,
    ):
        eventually(http, "/invoices", [])
        answers = [http.post("/orders", json={"number": n, "cents": 10 - n}).status_code for n in (1, 2, 30)]
        eventually(http, "/invoices", [{"number": 1, "cents": 9}, {"number": 2, "cents": 8}])
        process.terminate()
        process.wait(DEADLINE_S)

    assert answers == [201, 201, 422]
    assert "Application shutdown complete" in log.read_text()


def test_the_django_shop_writes_an_invoice_for_each_order_that_was_committed(postgres_url: str, tmp_path: Path) -> None:
    folder, port, log = EXAMPLES / "django_outbox", free_port(), tmp_path / "log"
    manage = [sys.executable, str(folder / "manage.py")]
    prepare = [*manage, "migrate", "--verbosity", "0"]
    subprocess.run(prepare, cwd=folder, env=surroundings(postgres_url), check=True)

    with (
        running([*manage, "handle_events"], folder, postgres_url, log),
        running([*manage, "runserver", "--noreload", f"127.0.0.1:{port}"], folder, postgres_url, log),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http,
    ):
        eventually(http, "/invoices", {"invoices": []})
        wait_for(log, "listening")
        answers = [http.post("/orders", json={"number": n, "cents": 10 - n}).status_code for n in (1, 2, 30)]
        eventually(http, "/invoices", {"invoices": [{"number": 1, "cents": 9}, {"number": 2, "cents": 8}]})

    assert answers == [201, 201, 422]


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while text not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def test_the_catalog_matches_the_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    command = ["outbox", "contracts", "catalog", "shop_contracts", "--output", str(ROOT / "docs" / "events.md")]

    assert run([*command, "--check"]) == 0


def test_a_stale_catalog_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(EXAMPLES)
    (tmp_path / "events.md").write_text("# Events\n")
    command = ["outbox", "contracts", "catalog", "shop_contracts", "--output", str(tmp_path / "events.md")]

    assert run([*command, "--check"]) == 1
    assert run(command) == 0
    assert run([*command, "--check"]) == 0
