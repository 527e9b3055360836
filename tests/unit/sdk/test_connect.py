"""How a program opens ledgers: `tape.connect` and `tape.aconnect`."""

import inspect
from pathlib import Path

import pytest

import tape
from tape.core.errors import UsageError, VersionConflict
from tape.core.run_state import RunStatus
from tape.sdk.nouns import blocking


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'tape.db'}"


def test_a_program_without_async_has_the_same_nouns(url: str) -> None:
    with tape.connect(url) as client:
        begun = client.runs.begin("treasury", owner="w1")
        client.values.set("treasury", "fx", 1.1)
        client.runs.end(begun.run.run_id)

    with tape.connect(url) as client:
        found = client.values.get("treasury", "fx")
        assert found is not None and found.value == 1.1
        assert client.runs.get(begun.run.run_id).status is RunStatus.TERMINAL


def test_an_error_reaches_a_program_without_async_as_it_is(url: str) -> None:
    with tape.connect(url) as client:
        client.values.set("treasury", "fx", 1)

        with pytest.raises(VersionConflict):
            client.values.set("treasury", "fx", 2, if_version=0)


def test_a_program_without_async_watches_too(url: str) -> None:
    with tape.connect(url) as client:
        client.values.set("treasury", "fx", 1)
        with client.values.watch("treasury", "fx") as watch:
            client.values.set("treasury", "fx", 2)

            seen = [next(watch).value.value, next(watch).value.value]

    assert seen == [1, 2]


def test_a_program_without_async_publishes_and_follows_events(url: str) -> None:
    with tape.connect(url) as client:
        client.events.append([tape.Event(run_id="r", payload=n) for n in range(3)], open=True)
        with client.events.stream(run_id="r", from_seq=2) as entries:
            found = [next(entries).payload, next(entries).payload]

    assert found == [1, 2]


async def test_two_nodes_over_one_file_see_each_other(url: str) -> None:
    async with tape.aconnect(url) as one, tape.aconnect(url) as other:
        await one.values.set("treasury", "fx", 1)
        found = await other.values.get("treasury", "fx")

    assert found is not None and found.version == 1


async def test_without_a_url_the_store_of_the_environment_is_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPE_STORE", url)

    async with tape.aconnect() as client:
        await client.values.set("treasury", "fx", 1)
    async with tape.aconnect(url) as client:
        assert (await client.values.newest("treasury", "fx")).version == 1


async def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(UsageError, match="a store is"):
        async with tape.aconnect("ftp://localhost"):
            pytest.fail("it opened")


async def test_every_method_of_every_noun_is_there_without_async(url: str) -> None:
    async with tape.aconnect(url) as client:
        nouns = {name: methods(type(noun)) for name, noun in vars(client).items() if name not in ("app", "_ledgers")}

    waiting = {name: methods(getattr(blocking, name.capitalize())) for name in nouns}

    assert waiting == nouns


def methods(noun: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(noun, inspect.isfunction) if not name.startswith("_")}
