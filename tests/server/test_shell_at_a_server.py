"""Commands with `--store tape://…`: what a server offers works there, and the rest says that it does not."""

import json
import sys
from functools import partial
from select import select
from subprocess import PIPE, Popen
from typing import IO

import httpx
import pytest

from tape.cli.main import run
from tests.process.processes import until
from tests.server.reading import publish
from tests.server.server import TapeServer


def lines(server: TapeServer, capsys: pytest.CaptureFixture[str], *command: str) -> list[dict[str, object]]:
    assert run([*command, "--json", "--store", server.rpc]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_events_are_published_and_shown(
    lasting_server: TapeServer, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    published = lines(lasting_server, capsys, "publish", run_id, '{"n": 1}', "--open", "--type", "noted")
    shown = lines(lasting_server, capsys, "tail", "--run", run_id, "--no-follow")
    matching = lines(lasting_server, capsys, "tail", f"/tape/event/noted/{run_id}", "--no-follow")

    assert [entry["seq"] for entry in published] == [1]
    assert [(entry["global_seq"], entry["payload_json"]) for entry in shown] == [
        (published[0]["global_seq"], '{"n":1}')
    ]
    assert matching == shown


def test_a_tail_begins_with_the_next_entry(server: TapeServer, http: httpx.Client, run_id: str) -> None:
    publish(http, run_id, 1, 2, 3)
    head = http.get("/ready").json()["head"]
    command = [sys.executable, "-m", "tape.cli.main", "tail", "--json", "--store", server.rpc]

    def is_shown(output: IO[str]) -> bool:
        publish(http, run_id, 4)
        return bool(select([output], [], [], 0)[0])

    with Popen(command, stdout=PIPE, text=True) as tail:
        assert tail.stdout is not None
        until(partial(is_shown, tail.stdout), "an entry is shown")
        first = json.loads(tail.stdout.readline())
        tail.terminate()

    assert first["global_seq"] > head and first["payload_json"] == "4"


def test_a_fork_is_made_and_compared_at_the_server(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(lasting, run_id, 1, 2, 3)
    lasting.post(f"/runs/{run_id}/close")

    (forked,) = lines(lasting_server, capsys, "run", "fork", run_id, "--at", "2")
    here = run(["run", "diff", run_id, str(forked["child_run_id"]), "--store", lasting_server.store])
    table = capsys.readouterr().out
    there = run(["run", "diff", run_id, str(forked["child_run_id"]), "--store", lasting_server.rpc])

    assert (here, there, capsys.readouterr().out) == (0, 0, table)
    assert "share 2 entries" in table


def test_a_diff_in_json_has_the_places_that_differ(
    lasting_server: TapeServer, lasting: httpx.Client, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, payloads in ((f"{run_id}-a", (1, 2)), (f"{run_id}-b", (1, 3))):
        publish(lasting, name, *payloads)

    head, row = lines(lasting_server, capsys, "run", "diff", f"{run_id}-a", f"{run_id}-b")

    assert (head["rows"], head["differing"]) == (2, 1)
    assert row["changes"] == [{"path": "", "one": 2, "other": 3}]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("journal", "verify"), "the URL of the server's store"),
        (("run", "fork", "r", "--at", "1", "--producers", "shop"), "the URL of the server's store"),
    ],
)
def test_what_a_server_does_not_offer_is_an_error(
    lasting_server: TapeServer, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], advice: str
) -> None:
    assert run([*command, "--store", lasting_server.rpc]) == 2

    assert advice in capsys.readouterr().err


def test_an_unknown_run_is_named(lasting_server: TapeServer, capsys: pytest.CaptureFixture[str]) -> None:
    codes = [
        run([*command, "--store", lasting_server.rpc])
        for command in (("run", "diff", "no-a", "no-b"), ("run", "fork", "no-a", "--at", "1"))
    ]

    assert codes == [4, 4] and capsys.readouterr().err.count("there is no run 'no-a'") == 2
