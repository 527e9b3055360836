"""`tape work` and `run_pubsub_bridge` publish to the connections in the file of TAPE_CONFIG."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from tape.cli.main import run
from tape.compose import open_journal, open_store
from tape.core.event import Event
from tape.reactions import run_pubsub_bridge
from tests.bridges.bridge_worker import register
from tests.bridges.receivers import PubsubReceiver, RedisReceiver
from tests.bridges.stopping import stop_while_unavailable
from tests.server.server import clean_environment
from tests.servers import forked
from tests.servers.listening import PubsubServer
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyServer


def configured(folder: Path, name: str, settings: dict[str, object]) -> str:
    lines = [f"[connections.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in settings.items())]
    path = folder / "tape.toml"
    path.write_text("\n".join(lines))
    return str(path)


async def prepared(url: str, target: str, count: int) -> None:
    async with open_store(url) as store:
        await register(store, target)
    async with open_journal(url) as journal:
        await journal.append([Event(run_id="r1", subject="/a/b", payload={"n": n}) for n in range(count)], open=True)


async def test_tape_work_needs_no_module_to_publish(tmp_path: Path, valkey_server: ValkeyServer) -> None:
    receiver, url = RedisReceiver(valkey_server), f"sqlite:///{tmp_path / 'tape.db'}"
    await prepared(url, receiver.target, 3)
    config = configured(tmp_path, receiver.name, receiver.settings)

    environment = {**clean_environment(), "TAPE_CONFIG": config, "TAPE_DATA": str(tmp_path)}
    command = ["work", "--once", "--json", "--store", url]
    done = forked.run("tape.cli.main", command, folder=tmp_path, environment=environment)

    assert done.returncode == 0 and json.loads(done.stdout) == {"handled": 3}
    assert sorted(each.payload["n"] for each in await receiver.received()) == [0, 1, 2]


async def test_a_worker_stopped_while_its_peer_is_unavailable_has_handled_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    await prepared(url, "redis-stream://orders", 3)
    config = configured(tmp_path, "redis-stream", {"url": f"redis://127.0.0.1:{free_port()}/0"})

    output = await anyio.to_thread.run_sync(stop_while_unavailable, tmp_path, config, ["work", "--store", url])

    async with open_store(url) as store:
        found = {(task.status.name, task.attempts) for task in await store.tasks.listed()}
    assert (output, found) == ({"handled": 0}, {("PENDING", 0)})


def test_work_without_modules_and_connections_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAPE_CONFIG", raising=False)

    assert run(["work", "--store", "memory://"]) == 2
    assert "TAPE_CONFIG" in capsys.readouterr().err


async def test_a_task_for_an_unconfigured_target_stays_pending(tmp_path: Path, valkey_server: ValkeyServer) -> None:
    receiver, url = RedisReceiver(valkey_server), f"sqlite:///{tmp_path / 'tape.db'}"
    await prepared(url, "nats://orders", 2)
    config = configured(tmp_path, receiver.name, receiver.settings)

    environment = {**clean_environment(), "TAPE_CONFIG": config, "TAPE_DATA": str(tmp_path)}
    command = ["work", "--once", "--json", "--store", url]
    done = forked.run("tape.cli.main", command, folder=tmp_path, environment=environment)

    assert done.returncode == 0 and json.loads(done.stdout) == {"handled": 0}
    async with open_store(url) as store:
        assert {task.status.name for task in await store.tasks.listed()} == {"PENDING"}


@pytest.mark.parametrize(("target", "reaction_id"), [("pubsub://shop/orders", ""), ("nats://elsewhere", "rule")])
def test_the_pubsub_bridge_publishes_what_is_for_its_topic_or_of_its_reaction(
    target: str, reaction_id: str, tmp_path: Path, pubsub_service: PubsubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, url = PubsubReceiver(pubsub_service), f"sqlite:///{tmp_path / 'tape.db'}"
    monkeypatch.setenv("TAPE_CONFIG", configured(tmp_path, receiver.name, receiver.settings))
    anyio.run(prepared, url, target, 3)

    handled = run_pubsub_bridge(url, project="shop", topic="orders", reaction_id=reaction_id, once=True)

    assert handled == 3
    assert {each.order for each in anyio.run(receiver.received)} == {"r1"}


def test_importing_the_core_loads_no_client_library() -> None:
    program = "import sys, tape, tape.reactions, tape.matcher.dispatcher, tape.bridges.peers; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert {"nats", "confluent_kafka", "google.pubsub_v1", "httpcore", "redis"}.isdisjoint(done.stdout.split())
