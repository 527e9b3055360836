"""What `deploy/` asks of systemd, Compose and Kubernetes is well-formed, and what it asks of Tape is understood."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import click
import jsonschema_rs
import pytest
import yaml

from tape.cli.choices import Choices
from tape.cli.main import tape
from tape.settings import NAMES
from tape.store.postgres.store import open_store
from tests.architecture.tree import ROOT
from tests.servers.databases import execute
from tests.servers.postgres import PostgresServer

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MANIFESTS = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "tape.yaml").read_text()))
SCHEMAS = Path(__file__).with_name("schemas")
PRIVILEGES = """
SELECT rolsuper, rolcreaterole, rolcreatedb, has_database_privilege('public', current_database(), 'CONNECT')
FROM pg_roles WHERE rolname = current_user
"""
LOOPBACK = re.compile(r"127\.0\.0\.1:7880")


def faults(schema: str, document: object) -> list[str]:
    validator = jsonschema_rs.validator_for(json.loads((SCHEMAS / f"{schema}.json").read_text()))
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(document)]


def named(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def pods() -> Iterator[dict[str, Any]]:
    for manifest in MANIFESTS:
        if "template" in manifest.get("spec", {}):
            yield manifest


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Every command line of Tape that stands in these files, without the program's name."""
    for unit in UNITS:
        for line in re.findall(r"^ExecStart(?:Pre)?=/usr/bin/env tape (.+)$", unit.read_text(), re.MULTILINE):
            yield unit.name, shlex.split(line.replace("%i", "shop.reactions"))
    for name, service in COMPOSE["services"].items():
        if service["image"].startswith("tape:"):
            yield f"compose {name}", service["command"]
    for manifest in pods():
        for container in manifest["spec"]["template"]["spec"]["containers"]:
            if container["image"].startswith("tape"):
                yield f"kubernetes {container['name']}", container["args"]


LINES = list(command_lines())


@pytest.mark.parametrize(("place", "line"), LINES, ids=[place for place, _ in LINES])
def test_every_command_is_one_that_tape_understands(place: str, line: list[str]) -> None:
    group = click.Context(tape, obj=Choices())
    command = tape.get_command(group, line[0])

    assert command is not None
    command.make_context(line[0], list(line[1:]), parent=group)


def test_commands_were_found_in_every_file() -> None:
    assert {place.split()[0] for place, _ in LINES} == {"compose", "kubernetes", *(unit.name for unit in UNITS)}


def test_every_variable_is_one_that_settings_know() -> None:
    texts = [path.read_text() for path in DEPLOY.rglob("*") if path.is_file()]
    used = {name.lower() for text in texts for name in re.findall(r"\bTAPE_([A-Z_]+)\b", text)}

    assert used - {"module"} <= NAMES
    assert {"data", "store", "listen_url"} <= used


def test_a_server_is_only_ever_asked_to_listen_on_loopback() -> None:
    serving = [line for _, line in LINES if line[0] == "serve"]

    assert len(serving) == 3
    assert all(LOOPBACK.search(" ".join(line)) for line in serving)


@pytest.mark.parametrize("schema", ["compose-spec", "compose"], ids=["the specification's", "ours"])
def test_the_compose_file_is_one(schema: str) -> None:
    assert faults(schema, COMPOSE) == []


def test_a_mistyped_word_of_the_compose_file_is_found() -> None:
    mistyped = {**COMPOSE, "services": {"tape": {**COMPOSE["services"]["tape"], "comand": ["serve"]}}}

    assert len(faults("compose-spec", mistyped)) == 1


def test_services_secrets_and_volumes_of_the_compose_file_exist() -> None:
    services = COMPOSE["services"]
    awaited = {name for service in services.values() for name in service.get("depends_on", {})}
    secrets = {name for service in services.values() for name in service.get("secrets", [])}

    assert awaited <= services.keys()
    assert secrets == COMPOSE["secrets"].keys()
    assert services["proxy"]["network_mode"] == "service:tape"


def faults_of(manifest: dict[str, Any], schema: str) -> list[str]:
    """What a schema that has every kind finds wrong with one."""
    kinds = json.loads((SCHEMAS / f"{schema}.json").read_text())["$defs"]
    (name,) = [name for name in kinds if re.fullmatch(rf"(io\.k8s\.api\..+\.)?{manifest['kind']}", name)]
    judge = jsonschema_rs.validator_for({"$defs": kinds, "$ref": f"#/$defs/{name}"})
    return [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in judge.iter_errors(manifest)]


@pytest.mark.parametrize("schema", ["kubernetes-1.37", "kubernetes"], ids=["of Kubernetes", "ours"])
@pytest.mark.parametrize("manifest", MANIFESTS, ids=named)
def test_a_manifest_is_one(manifest: dict[str, Any], schema: str) -> None:
    assert faults_of(manifest, schema) == []


@pytest.mark.parametrize("field", ["replica", "template"])
def test_a_mistake_in_a_manifest_is_found(field: str) -> None:
    deployment = next(manifest for manifest in MANIFESTS if manifest["kind"] == "Deployment")

    assert faults_of({**deployment, "spec": {**deployment["spec"], field: 2}}, "kubernetes-1.37")


def test_no_two_manifests_have_one_name() -> None:
    assert len({named(manifest) for manifest in MANIFESTS}) == len(MANIFESTS)


def test_what_selects_a_pod_finds_one() -> None:
    labels = [manifest["spec"]["template"]["metadata"]["labels"] for manifest in pods()]
    selectors = [m["spec"]["selector"] for m in MANIFESTS if "selector" in m.get("spec", {})]

    assert selectors
    assert all(selector.get("matchLabels", selector) in labels for selector in selectors)


@pytest.mark.parametrize("manifest", list(pods()), ids=named)
def test_a_pod_mounts_the_volumes_it_has(manifest: dict[str, Any]) -> None:
    pod = manifest["spec"]["template"]["spec"]
    mounted = {mount["name"] for each in pod["containers"] for mount in each.get("volumeMounts", [])}

    assert mounted == {volume["name"] for volume in pod.get("volumes", [])}


def test_the_proxy_is_the_same_everywhere() -> None:
    (config,) = [manifest for manifest in MANIFESTS if manifest["kind"] == "ConfigMap"]

    assert config["data"]["default.conf"] == (DEPLOY / "proxy.conf").read_text()


def test_a_stream_flows_through_the_proxy_and_nobody_comes_unasked() -> None:
    text = (DEPLOY / "proxy.conf").read_text()

    assert "proxy_buffering off;" in text and "proxy_set_header Host 127.0.0.1:7880;" in text
    assert "auth_basic_user_file" in text


def test_the_pooler_keeps_prepared_statements() -> None:
    pooler = ConfigParser()
    pooler.read(DEPLOY / "pgbouncer.ini")

    assert pooler["pgbouncer"]["pool_mode"] == "transaction"
    assert int(pooler["pgbouncer"]["max_prepared_statements"]) > 0


def test_the_image_starts_tape_as_nobody_in_particular() -> None:
    text = (DEPLOY / "Dockerfile").read_text()

    assert re.search(r"^USER 10001$", text, re.MULTILINE)
    assert json.loads(re.findall(r"^ENTRYPOINT (.+)$", text, re.MULTILINE)[0]) == ["tape"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_nothing_wrong_with_a_unit(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name.replace("@.", "@shop.reactions.")
    copy.write_text(unit.read_text())

    judged = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )

    complaints = [line for line in judged.stderr.splitlines() if unit.stem.rstrip("@") in line]
    assert complaints == []


async def test_tape_runs_as_an_ordinary_role_of_the_server_that_compose_starts(postgres_server: PostgresServer) -> None:
    script = (DEPLOY / "postgres.sql").read_text()
    mounts = COMPOSE["services"]["postgres"]["volumes"]
    with as_psql(script, postgres_server) as url:
        async with open_store(url) as store:
            await store.journal.bounds()
        may_not = await privileges(url)

    assert "./postgres.sql:/docker-entrypoint-initdb.d/tape.sql:ro" in mounts
    assert "POSTGRES_USER" not in COMPOSE["services"]["postgres"]["environment"]
    assert may_not == (False, False, False, False)


@contextmanager
def as_psql(script: str, server: PostgresServer) -> Iterator[str]:
    """What the script makes, under another name and with a password that is in no file; it is gone afterwards."""
    name = f"tape_{uuid4().hex[:8]}"
    sql = re.sub(r"^(--|\\set).*\n", "", script, flags=re.MULTILINE).replace(":'password'", "'secret'")
    for statement in filter(str.strip, re.sub(r"\btape\b", name, sql).split(";")):
        execute(server.url("postgres"), statement)
    yield server.url(name).replace("//tape@", f"//{name}:secret@")
    execute(server.url("postgres"), f"DROP DATABASE {name} WITH (FORCE)")
    execute(server.url("postgres"), f"DROP ROLE {name}")


async def privileges(url: str) -> tuple[bool, ...]:
    """Whether it is a superuser, may make roles or databases, and whether everybody may connect."""
    connection = await asyncpg.connect(url)
    try:
        return tuple(await connection.fetchrow(PRIVILEGES))
    finally:
        await connection.close()
