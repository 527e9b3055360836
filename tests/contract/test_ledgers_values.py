"""Values in their ledger, and watchers."""

from contextlib import aclosing, suppress
from hashlib import sha256
from itertools import pairwise

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.errors import Conflict, KeyConflict, TooLarge, VersionConflict
from tape.core.value import ValueChange
from tape.operations.ledgers import Watching
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.ledgers import all_entries, concurrently, two_nodes
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers


async def seen(watch: Watching, count: int) -> list[ValueChange]:
    with anyio.fail_after(DEADLINE_S):
        async with aclosing(watch):
            return [await watch.__anext__() for _ in range(count)]


async def test_each_write_is_a_version_and_an_entry(node: AsyncNode, journal: Journal) -> None:
    versions = [(await node.values.set("treasury", "fx", value)).version for value in (70, 90)]
    gone = await node.values.delete("treasury", "fx")
    found = await node.values.newest("treasury", "fx")

    assert versions == [1, 2] and gone == found
    assert (found.version, found.deleted, await node.values.get("treasury", "fx")) == (3, True, None)
    assert [entry.subject for entry in await all_entries(journal)] == [
        "/tape/value/changed/treasury/fx",
        "/tape/value/changed/treasury/fx",
        "/tape/value/deleted/treasury/fx",
    ]


async def test_a_write_over_a_stale_version_is_refused(node: AsyncNode) -> None:
    await node.values.set("treasury", "fx", 70, if_version=0)

    with pytest.raises(VersionConflict):
        await node.values.set("treasury", "fx", 90, if_version=0)
    with pytest.raises(VersionConflict):
        await node.values.set("treasury", "fx", 90, if_version=7)
    assert (await node.values.set("treasury", "fx", 90, if_version=1)).value == 90


async def test_a_write_over_a_value_never_brings_back_a_deleted_one(backend: Backend) -> None:
    async with two_nodes(backend) as (here, there):
        await here.values.set("treasury", "fx", 0, writer="maker")

        async def change(number: int) -> None:
            node = (here, there)[number % 2]
            with suppress(Conflict):
                if number % 3 == 0:
                    await node.values.delete("treasury", "fx", writer="maker")
                elif number % 3 == 1:
                    await node.values.set("treasury", "fx", number, if_version=0, writer="maker")
                else:
                    await node.values.set("treasury", "fx", number, if_exists=True, writer="over")

        await concurrently(24, change)
        with suppress(Conflict):
            await here.values.delete("treasury", "fx", writer="maker")
        for missing in ("fx", "never"):
            with pytest.raises(Conflict, match="no value treasury/"):
                await there.values.set("treasury", missing, 1, if_exists=True)
        changes = [change.value for change in await here.values.history("treasury", "fx")]

    assert [each.version for each in changes] == [*range(1, len(changes) + 1)]
    assert [(one, two) for one, two in pairwise(changes) if one.deleted and two.writer == "over"] == []


async def test_of_those_who_write_over_one_version_one_wins(backend: Backend) -> None:
    async with two_nodes(backend) as nodes:

        async def write(number: int) -> bool:
            try:
                await nodes[number % 2].values.set("treasury", "fx", number, if_version=0)
            except VersionConflict:
                return False
            return True

        won = await concurrently(8, write)

        assert won.count(True) == 1
        assert (await nodes[0].values.newest("treasury", "fx")).value == won.index(True)


async def test_none_of_those_who_write_at_once_is_lost(backend: Backend) -> None:
    async with two_nodes(backend) as nodes:
        watch = await nodes[0].values.watch("treasury", "n", from_version=0)

        written = await concurrently(16, lambda n: nodes[n % 2].values.set("treasury", "n", n))
        changes = await seen(watch, 16)

        assert sorted(value.version for value in written) == [*range(1, 17)]
        assert [change.value.version for change in changes] == [*range(1, 17)]
        assert sorted(int(change.value.value_json) for change in changes) == [*range(16)]


async def test_a_watcher_sees_what_is_and_every_version_after_it(node: AsyncNode) -> None:
    await node.values.set("treasury", "fx", 70)
    watch = await node.values.watch("treasury", "fx")

    for value in (90, 91):
        await node.values.set("treasury", "fx", value)
    await node.values.delete("treasury", "fx")
    first, second, third, last = await seen(watch, 4)

    assert (first.value.value, first.prev_version, first.prev_value_json) == (70, None, None)
    assert (second.value.value, second.prev_version, second.prev_value_json) == (90, 1, "70")
    assert (third.value.version, last.value.deleted, last.prev_value_json) == (3, True, "91")


async def test_a_watcher_of_nothing_sees_the_first_version(node: AsyncNode) -> None:
    watch = await node.values.watch("treasury", "fx")
    await node.values.set("treasury", "other", 1)
    await node.values.set("treasury", "fx", 2)

    (change,) = await seen(watch, 1)

    assert (change.value.value, change.prev_version) == (2, 0)


async def test_a_watcher_goes_on_after_the_version_it_knows(node: AsyncNode) -> None:
    for value in range(5):
        await node.values.set("treasury", "fx", value)

    changes = await seen(await node.values.watch("treasury", "fx", from_version=2), 3)

    assert [change.value.version for change in changes] == [3, 4, 5]


async def test_a_write_with_a_key_is_made_once(node: AsyncNode) -> None:
    first = await node.values.set("treasury", "fx", 70, key="k")
    await node.values.set("treasury", "fx", 80)
    again = await node.values.set("treasury", "fx", 70, key="k")

    assert first == again and (await node.values.newest("treasury", "fx")).value == 80
    with pytest.raises(KeyConflict):
        await node.values.set("treasury", "fx", 71, key="k")


async def test_the_values_of_a_namespace_are_listed_by_name(node: AsyncNode) -> None:
    for name in ("b", "a", "gone", "a/b"):
        await node.values.set("treasury", name, name)
    await node.values.set("treasury2", "c", 1)
    await node.values.delete("treasury", "gone")

    assert [value.key for value in await node.values.list_all("treasury")] == ["a", "a/b", "b"]


async def test_names_may_be_long_and_strange(node: AsyncNode, journal: Journal) -> None:
    namespace, name = "träsury /*" * 10, "…/%" * 30

    await node.values.set(namespace, name, None)

    found = await node.values.get(namespace, name)
    assert found is not None and (found.namespace, found.key, found.value) == (namespace, name, None)
    assert [value.key for value in await node.values.list_all(namespace)] == [name]
    (change,) = await seen(await node.values.watch(namespace, name, from_version=0), 1)
    assert change.value.key == name


async def test_a_value_is_not_a_file(node: AsyncNode) -> None:
    with pytest.raises(TooLarge, match="a value is at most"):
        await node.values.set("treasury", "fx", "x" * 200_000)


async def test_the_entries_of_values_are_in_a_run_that_is_not_shown(node: AsyncNode, journal: Journal) -> None:
    await node.values.set("treasury", "fx", 70)

    (entry,) = await all_entries(journal)

    assert entry.run_id == f"tape.value.{sha256(b'treasury').hexdigest()[:32]}"
    assert entry.kind == "value" and await journal.live_runs() == []
