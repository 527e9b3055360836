"""Values survive encoding and decoding, byte for byte."""

from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, reject, strategies as st

from tape.core.budget import Amount, Budget
from tape.core.caller import PLAIN
from tape.core.errors import UsageError
from tape.core.event import Entry, Event, Trace
from tape.core.ids import Epoch, RunId
from tape.core.reaction import HandlerKind, Reaction
from tape.core.run_state import RunStatus
from tape.server.grpc.batches import Batches
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import MessageMapping, build, member
from tape.wire.messages import entries, ledgers, tasks

MAPPINGS = [
    shape for module in (ledgers, tasks) for shape in vars(module).values() if isinstance(shape, MessageMapping)
]

names = st.text(st.characters(categories=["Lu", "Ll", "Nd", "Lo"]), min_size=1, max_size=20)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,19}", fullmatch=True)  # of apps and owners
payloads = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)

counts = st.integers(1, 1_000)
reactions = st.builds(
    Reaction,
    reaction_id=st.just("r"),
    subject_pattern=st.sampled_from(["/a/**", "/b/*/c"]),
    name=names,
    predicate_cel=names,
    handler_kind=st.just(HandlerKind.AGENT),
    agent_app=st.just("agent"),
    max_concurrency=counts,
    rate_limit_per_s=st.integers(0, 1_000),
    debounce_ms=st.integers(0, 1_000),
    retry_max=counts,
    retry_backoff_ms=counts,
    dlq_after_n=counts,
    num_shards=counts,
    bootstrap_from_head=st.booleans(),
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Anything of a type, as far as its fields determine it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return st.none() | values(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is not None:
        return st.dictionaries(names, names, max_size=3)
    return plain(getattr(hint, "__supertype__", hint))


def plain(kind: Any) -> st.SearchStrategy[Any]:
    if kind is Reaction:
        return reactions
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(
            built,
            st.just(kind),
            st.fixed_dictionaries(
                {f.name: ids if f.name in ("app", "owner") else values(hints[f.name]) for f in fields(kind)}
            ),
        )
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if issubclass(kind, timedelta):
        return st.integers(1_000, 900_000).map(lambda ms: timedelta(milliseconds=ms))
    return {str: names, int: st.integers(1, 1_000), bool: st.booleans()}[kind]


def built(kind: Any, given: dict[str, Any]) -> Any:
    try:
        return kind(**given)
    except UsageError:
        reject()


@pytest.mark.parametrize("shape", MAPPINGS, ids=lambda shape: shape.name)
def test_a_decoded_value_equals_the_encoded_one(shape: MessageMapping[Any, Any]) -> None:
    unmapped = shape.unmapped

    @given(values(shape.kind))
    def check(value: Any) -> None:
        events = shape.message(value)
        decoded = shape.value(
            type(events).FromString(events.SerializeToString()), **{n: getattr(value, n) for n in unmapped}
        )

        assert decoded == value

    check()


micros = st.integers(0, 1 << 51)  # two billion dollars
amounts = st.builds(Amount, usd_micros=micros, tokens=st.integers(0, (1 << 53) - 1))


@given(st.none() | micros, st.none() | st.integers(0, 1 << 40), amounts, amounts)
def test_no_millionth_of_a_dollar_is_lost(
    cap: int | None, token_cap: int | None, spent: Amount, reserved: Amount
) -> None:
    budget = Budget(run_id=RunId("r"), usd_cap_micros=cap, token_cap=token_cap, spent=spent, reserved=reserved)

    assert ledgers.budget_value(ledgers.budget(budget)) == budget


@st.composite
def events(draw: st.DrawFn) -> Event:
    is_json = draw(st.booleans())
    return Event(
        run_id="r-1",
        payload=draw(payloads if is_json else st.binary(max_size=20)),
        content_type="application/json" if is_json else "application/octet-stream",
        cause=draw(st.none() | st.integers(1, 1 << 40)),
        schema_version=draw(st.integers(1, 32_767)),
        trace=draw(st.none() | st.just(Trace("a" * 32, "b" * 16, "c" * 16))),
        attributes=draw(st.dictionaries(st.just("client_id"), names, max_size=1)),
    )


def entry(event: Event, place: int) -> Entry:
    return event.at(place, place, 1_700_000_000_000 + place, 1, Epoch(1_700_000_000_000))


@given(st.lists(events(), min_size=1, max_size=5))
def test_a_batch_is_its_entries(events: list[Event]) -> None:
    there = [entry(event, place) for place, event in enumerate(events, 1)]

    decoded = pb.EventBatch.FromString(b"".join(map(entries.in_batch, there))).entries
    alone = [pb.EventEntry.FromString(entries.encoded(each)) for each in there]

    assert [entries.entry_value(each) for each in decoded] == there and list(decoded) == alone


@given(st.lists(events(), min_size=1, max_size=5))
def test_the_bytes_of_a_batch_are_those_that_protobuf_itself_would_write(events: list[Event]) -> None:
    there = [entry(event, place) for place, event in enumerate(events, 1)]

    messages = Batches().messages(there)

    assert messages == [pb.EventBatch(entries=map(entries.entry_message, there)).SerializeToString()]


@given(events())
def test_an_event_is_appended_as_it_was_published(event: Event) -> None:
    events = pb.Event.FromString(entries.event_message(event).SerializeToString())

    assert entries.event_value(events, PLAIN).content == event.content


@pytest.mark.parametrize("number", [0, -1, 9])
def test_a_number_that_nobody_gave_is_refused(number: int) -> None:
    with pytest.raises(UsageError):
        member(RunStatus, number)


@pytest.mark.parametrize("fields_", [{"attempt": 1 << 64}, {"attempt": "x"}, {"run_id": "\ud800"}, {"run_id": 5}])
def test_a_value_that_a_message_cannot_hold_is_refused(fields_: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        build(pb.ResumeRunRequest, **fields_)
