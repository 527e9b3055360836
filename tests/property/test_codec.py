"""The codec never accepts a value that it cannot decode again."""

import json

from hypothesis import given, strategies as st

from tape.core import codec
from tape.core.errors import JsonLimit, TooLarge

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
strange = st.tuples(st.integers()) | st.binary() | st.dates() | st.frozensets(st.integers())


def trees(leaves: st.SearchStrategy[object], keys: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


good = trees(
    st.none()
    | st.booleans()
    | st.integers(codec.MIN_INT, codec.MAX_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    st.text(st.characters(exclude_characters="\0", codec="utf-8")),
)


@given(good)
def test_every_json_value_comes_back_unchanged(value: object) -> None:
    text = codec.encode(value)

    assert repr(codec.parse(text)) == repr(value)
    assert repr(codec.decode(text)) == repr(value)


@given(trees(scalars | strange, st.text() | st.integers() | st.none()))
def test_any_object_comes_back_unchanged_or_is_refused(value: object) -> None:
    try:
        text = codec.encode(value)
    except JsonLimit:
        return

    assert repr(codec.parse(text)) == repr(value)
    assert repr(codec.decode(text)) == repr(value)


@given(st.text(st.sampled_from('{}[]",:\\u0d8tfn1e+-. a\n\0\ud800')) | st.binary() | good.map(json.dumps))
def test_any_text_is_refused_or_read_as_something_that_can_be_written(text: str | bytes) -> None:
    try:
        value = codec.decode(text)
    except (JsonLimit, TooLarge):
        return

    assert repr(codec.decode(codec.encode(value))) == repr(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_keeps_every_bit(value: float) -> None:
    parsed = codec.parse(codec.encode(value))

    assert isinstance(parsed, float)
    assert parsed.hex() == value.hex()
