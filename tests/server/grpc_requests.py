"""Random requests of any procedure, made from the descriptor: ids that exist half of the time, and anything else."""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

DEEPEST: Final = 3
UNKNOWN_FIELDS: Final = (b"", b"", b"\xc0\x3e\x07", b"\xc2\x3e\x03abc", b"\xc5\x3e\x00\x00\x00\x00")  # of number 1,000
NO_MESSAGES: Final = (b"\xff", b"\x0a\x05a", b"\x0a\x02\xff\xfe")  # cut off, too short, and a text that is not UTF-8

NUMBERS: Final = (0, 1, 2, 3, 7, 100, 1_000, 60_000, -1, -2, 2**31 - 1, -(2**31))
LARGE: Final = (2**63 - 1, -(2**63), 2**53, 2**62, 1_700_000_000_000)
REALS: Final = (0.0, 1.0, 0.1, -0.0, -1.0, 1e-7, 1e300, float("nan"), float("inf"), -float("inf"))
TEXTS: Final = (
    "", "a", "k1", "é\u2028", "a\0b", "a/b", "../../x", " ", "\x1b[2J\r\n", "\u202e", "*", "/**", "%", "'; --",
    "x" * 129, "x" * 257, "x" * 20_000, "{", '{"a": 1}', "[1]", "null", '"\\ud800"', "1e999", "true", "payload.n > 1",
    "/a/b", "/a/*", "/tape/run/x", "AAAA", "message", "application/json", "00-" + "a" * 32 + "-" + "b" * 16 + "-01",
)  # fmt: skip

# What the fields of a request may name; each text is also used in fields that mean something else.
NAMES: Final = {
    "run_id": ("opened", "begun", "closed", "large"), "other": ("opened",), "parent_run_id": ("opened", "large"),
    "namespace": ("n",), "key": ("k",), "reaction_id": ("react",), "owner": ("worker",), "claimer": ("worker",),
    "idempotency_key": ("effect",), "effect_key": ("effect",), "gate": ("gate",), "timer_id": ("timer",),
    "app_name": ("app",), "user_id": ("user",), "session_id": ("session",), "app": ("app",), "user": ("user",),
    "session": ("session",),
    "reservation_id": ("reserved",), "subject_pattern": ("/a/**", "/a/*"), "subject": ("/a/b",),
    "type": ("message", ""),
    "tool": ("charge",), "kind": ("refund",), "value_json": ("1",), "payload_json": ("1", "{}"),
    "predicate_cel": ("", "payload.n > 1"), "cursor": ("",), "content_type": ("",), "traceparent": ("",),
}  # fmt: skip


def requests(descriptor: Descriptor, more: dict[str, tuple[str, ...]]) -> st.SearchStrategy[bytes]:
    """The bytes of a request; a few of them are no message of its type."""
    whole = st.builds(
        lambda message, unknown: message.SerializeToString() + unknown,
        messages(descriptor, {**NAMES, **more}),
        st.sampled_from(UNKNOWN_FIELDS),
    )
    return st.integers(0, 19).flatmap(lambda dice: whole if dice else st.sampled_from(NO_MESSAGES))


def messages(kind: Descriptor, names: dict[str, tuple[str, ...]], depth: int = 0) -> st.SearchStrategy[Message]:
    """A message with some of its fields, most of those that name something."""

    @st.composite
    def build(draw: st.DrawFn) -> Message:
        message = GetMessageClass(kind)()
        for field in kind.fields:
            likely = 9 if field.name in names else 5
            if draw(st.integers(0, 9)) < likely and (depth < DEEPEST or field.message_type is None):
                _set(message, field, lambda value: draw(value), names, depth)
        return message

    return build()


def _set(
    message: Any,
    field: FieldDescriptor,
    draw: Callable[[st.SearchStrategy[Any]], Any],
    names: dict[str, tuple[str, ...]],
    depth: int,
) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(message, field.name)[draw(texts(field.name, names))[:100]] = "v"
        return
    value = _value(field, names, depth)
    if field.is_repeated:
        getattr(message, field.name).extend(draw(st.lists(value, max_size=3)))
    elif field.message_type is not None:
        getattr(message, field.name).CopyFrom(draw(value))
    else:
        setattr(message, field.name, draw(value))


def _value(field: FieldDescriptor, names: dict[str, tuple[str, ...]], depth: int) -> st.SearchStrategy[Any]:
    if field.message_type is not None:
        return messages(field.message_type, names, depth + 1)
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return texts(field.name, names)
        case FieldDescriptor.TYPE_BYTES:
            return st.binary(max_size=40)
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_DOUBLE:
            return st.sampled_from(REALS)
        case FieldDescriptor.TYPE_ENUM:
            assert field.enum_type is not None
            return st.sampled_from([each.number for each in field.enum_type.values] + [-1, 99])
        case FieldDescriptor.TYPE_INT32:
            return st.sampled_from(NUMBERS)
        case _:
            return st.sampled_from((0, 1, -1, 2**63 - 1) if field.name == "wait_ms" else (*NUMBERS, *LARGE))


def texts(name: str, names: dict[str, tuple[str, ...]]) -> st.SearchStrategy[str]:
    """A text that names something, half of the time."""
    anything = st.sampled_from(TEXTS) | st.text(st.characters(codec="utf-8"), max_size=12)
    known = names.get(name)
    return (
        anything
        if known is None
        else st.booleans().flatmap(lambda is_known: st.sampled_from(known) if is_known else anything)
    )
