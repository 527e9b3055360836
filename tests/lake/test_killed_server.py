"""A search ends with the server that started it."""

import os
import signal
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import anyio
import psutil

from tests.deadlines import DEADLINE_S
from tests.lake.test_searches import children, filled
from tests.server.server import TapeServer


def test_a_server_that_is_killed_leaves_no_search_behind(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tape.db"
    anyio.run(partial(filled, url, tmp_path / "lake"))
    with TapeServer(tmp_path, url, environment={"TAPE_SPARK_MASTER": "local[1]"}) as server, server.client() as http:
        http.post("/reactions/late/dry-run").raise_for_status()
        give_up = monotonic() + DEADLINE_S
        while not any(child.name() == "java" for child in children(server)):
            assert monotonic() < give_up
            sleep(0.1)
        started = children(server)
        os.kill(server.pid, signal.SIGKILL)

        _, alive = psutil.wait_procs(started, timeout=DEADLINE_S)

    assert len(started) > 1 and alive == []
