"""Hostile values: accepted ones come back unchanged, type for type; others get the same error on all stores."""

import pytest

from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Event, Trace
from tape.core.ports import Store
from tape.core.sequence import AppendRequest, CellChange, CellId
from tests.contract.backends import needs_ledgers
from tests.contract.events import entries, take

CONTROLS = "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f"
HARMLESS: dict[str, JsonValue] = {
    "separators": "a\x1fb\x1ec",
    "controls": CONTROLS,
    "a key of controls": {CONTROLS: [CONTROLS]},
    "a backslash before u0000": "\\u0000",
    "a backslash before u001f": "\\u001f \\x1f",
    "quotes": "'; DROP TABLE tape_journal; -- \" $$ $1 :after %s {} \\",
    "dollar quotes": "$tape$ $$ $1",
    "byte order marks": "\ufeff\ufffe\uffff",
    "noncharacters and the last one": "\ufdd0\U0010ffff",
    "emoji with joiners": "👩‍👩‍👧 é e\u0301 \u202e\u200b\u2028\u2029",
    "the largest ints": [2**63 - 1, -(2**63), 2**53 + 1],
    "floats": [1e308, 5e-324, 0.1, 1e16],
    "words that are not values": ["NULL", "null", "\\N", "{}", "{1,2}", "(,)", "t", ""],
    "nothing": None,
    "an empty text": "",
    "empty names": {"": {"": []}},
    "names a browser minds": {"__proto__": 1, "constructor": {}},
}
REFUSED: dict[str, object] = {
    "U+0000": "a\0b",
    "U+0000 in a key": {"a\0b": 1},
    "a lone surrogate": "\ud800",
    "an int beyond 64 bits": 2**63,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "a tuple": (1, 2),
}
SUBJECTS = ["/a/'; DROP TABLE x; --", "/a/%", "/a/_", "/a/é", "/a/👩‍👧", '/a/"', "/a/$1", "/a/:after", "/a/b\\"]


@pytest.mark.parametrize("payload", HARMLESS.values(), ids=HARMLESS)
async def test_a_payload_comes_back_type_for_type(journal: Journal, payload: JsonValue) -> None:
    await journal.append(Event(run_id="r1", payload=payload), open=True)

    (entry,) = await take(journal.stream(), 1)

    assert repr(entry.payload) == repr(payload) and entry.is_intact


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
async def test_a_payload_that_could_not_come_back_is_refused(journal: Journal, payload: JsonValue) -> None:
    with pytest.raises(UsageError):
        await journal.append(Event(run_id="r1", payload=payload), open=True)

    assert await journal.head() == 0


async def test_hostile_payloads_of_one_request_stay_apart(journal: Journal) -> None:
    events = [Event(run_id=f"r{number % 3}", payload=payload) for number, payload in enumerate(HARMLESS.values())]
    events.append(Event(run_id="bytes", payload=bytes(range(256)), content_type="application/octet-stream"))

    await journal.append(events, open=True)

    found = await take(journal.stream(), len(events))
    assert [repr(entry.payload) for entry in found] == [repr(event.payload) for event in events]
    assert all(entry.is_intact for entry in found)


@pytest.mark.parametrize("subject", SUBJECTS)
async def test_a_subject_finds_its_own_entry_and_no_other(journal: Journal, subject: str) -> None:
    events = [Event(run_id="r1", payload=other, subject=f"/a/{number}") for number, other in enumerate(SUBJECTS)]
    try:
        hostile = Event(run_id="r1", payload="mine", subject=subject)
    except UsageError:
        return  # refused before any store has seen it

    await journal.append([*events, hostile], open=True)

    found = [entry.payload async for entry in journal.stream(subject=subject, follow=False)]
    assert found == ["mine"]


async def test_all_other_fields_of_an_event_come_back_too(journal: Journal) -> None:
    attributes = {"quotes": "'\"\\", "empty": "", "words": "null NULL \\N {}", "unicode": "é 👩"}
    trace = Trace("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "")

    events = Event(
        run_id="r1", payload=1, attributes=attributes, trace=trace, schema_version=32767, event_id="id.1-b_c"
    )
    await journal.append([Event(run_id="r1", payload=0), events], open=True)

    _, entry = await take(journal.stream(), 2)
    assert entry[6:] == events.content and entry.attributes == attributes


@needs_ledgers
@pytest.mark.parametrize("state", [*map(str, HARMLESS.values()), CONTROLS])
async def test_the_state_of_a_cell_comes_back(store: Store, state: str) -> None:
    cell_id = CellId("ledger'", f"key {CONTROLS}")
    change = CellChange(id=cell_id, seen=0, status="o'pen\x1f", state_json=state)

    (outcome,) = await store.journal.append([AppendRequest(cells=(change,))])

    assert entries(outcome) == []
    assert (await store.cells.read([cell_id]))[cell_id] == change.cell


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
@pytest.mark.parametrize("part", ["ledger", "key", "status", "state_json"])
def test_a_cell_that_not_every_store_can_hold_is_refused_before_it_is_sent(part: str, text: str) -> None:
    parts = {"ledger": "l", "key": "k", "status": "s", "state_json": "{}"} | {part: text}

    with pytest.raises(UsageError):
        CellChange(
            id=CellId(parts["ledger"], parts["key"]), seen=0, status=parts["status"], state_json=parts["state_json"]
        )


@needs_ledgers
async def test_a_block_stages_hostile_values_as_they_are(store: Store) -> None:
    events = tuple(Event(run_id="r1", payload=payload) for payload in HARMLESS.values())
    change = CellChange(id=CellId("l'", CONTROLS), seen=0, status="'", state_json="\\' $$ \x1e")

    async with store.transaction() as tx:
        tx.append(AppendRequest(events=events, cells=(change,), key="it's a key \\", opens=True))

    (found,) = tx.outcomes
    assert [entry[6:] for entry in found] == [event.content for event in events]
    assert (await store.cells.read([change.id]))[change.id] == change.cell
