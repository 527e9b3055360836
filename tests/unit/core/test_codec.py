"""Which JSON is accepted, and the errors for the rest."""

import datetime
import enum
from collections import OrderedDict

import pytest

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.errors import Corrupt, JsonLimit, TooLarge


class Colour(enum.IntEnum):
    RED = 1


class Name(str):
    __slots__ = ()


def nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_text_is_compact_and_in_utf8() -> None:
    assert codec.encode({"a": [1, 1.0, True, None], "é": "\u2028\n"}) == '{"a":[1,1.0,true,null],"é":"\u2028\\n"}'


@pytest.mark.parametrize("value", [None, True, 0, -0.0, "", [], {}, -(2**63), 2**63 - 1, 2**53 + 1, 1e308, 5e-324])
def test_any_json_value_comes_back_with_its_type(value: JsonValue) -> None:
    text = codec.encode(value)

    assert repr(codec.parse(text)) == repr(value)
    assert repr(codec.decode(text)) == repr(value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**5000], ids=["above", "below", "far"])
def test_an_int_beyond_64_bits_is_refused(value: int) -> None:
    with pytest.raises(JsonLimit, match=r"outside -2\^63 to 2\^63-1, at \$\.n"):
        codec.encode({"n": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(JsonLimit, match=r"NaN and Infinity are not JSON, at \$\[1\]"):
        codec.encode([0, value])


@pytest.mark.parametrize(
    "value",
    [(1,), {1}, b"x", datetime.date(2024, 1, 1), Colour.RED, Name("x"), OrderedDict(a=1), object(), 1j],
    ids=lambda value: type(value).__name__,
)
def test_a_type_that_would_change_is_refused(value: object) -> None:
    with pytest.raises(JsonLimit, match=f"{type(value).__name__} is not a JSON type"):
        codec.encode({"a": [value]})


@pytest.mark.parametrize("key", [1, None, True, Name("x"), ("a",)], ids=repr)
def test_a_key_that_is_not_exactly_text_is_refused(key: object) -> None:
    with pytest.raises(JsonLimit, match=r"a key is \w+, not str, at \$\.a"):
        codec.encode({"a": {key: 1}})


@pytest.mark.parametrize("value", ["\0", {"\0": 1}, [{"a": "x\0y"}], {"\\u0000": "\0"}], ids=repr)
def test_a_nul_is_refused_wherever_it_is(value: JsonValue) -> None:
    with pytest.raises(JsonLimit, match=r"U\+0000"):
        codec.encode(value)


def test_a_backslash_before_u0000_is_only_text() -> None:
    value = {"\\u0000": "\\\\u0000"}

    assert codec.parse(codec.encode(value)) == value


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, [{"a": "x\ud83d"}]], ids=ascii)
def test_a_lone_surrogate_is_refused_wherever_it_is(value: JsonValue) -> None:
    with pytest.raises(JsonLimit, match="lone surrogate"):
        codec.encode(value)


def test_sixty_four_levels_get_in_and_one_more_does_not() -> None:
    assert codec.decode(codec.encode(nested(64))) == nested(64)

    with pytest.raises(JsonLimit, match="64 levels"):
        codec.encode(nested(65))


def test_a_cycle_is_too_deep() -> None:
    cycle: list[object] = []
    cycle += [cycle, cycle]

    with pytest.raises(JsonLimit, match="64 levels"):
        codec.encode({"a": cycle})


def test_a_value_that_unfolds_without_end_is_too_large() -> None:
    value: JsonValue = "x"
    for _ in range(60):
        value = [value, value]

    with pytest.raises(TooLarge, match="1,048,576 bytes"):
        codec.encode(value)


def test_ten_thousand_keys_get_in_and_one_more_does_not() -> None:
    codec.encode(dict.fromkeys(map(str, range(10_000))))

    with pytest.raises(JsonLimit, match=r"10,001 keys and the limit is 10,000, at \$\[0\]"):
        codec.encode([dict.fromkeys(map(str, range(10_001)))])


@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_mebibyte_gets_in_and_one_byte_more_does_not(letter: str) -> None:
    text = letter * ((1_048_576 - 2) // len(letter.encode()))

    assert codec.decode(codec.encode(text)) == text
    with pytest.raises(TooLarge, match="1,048,576 bytes"):
        codec.encode(text + "x")


def test_an_error_names_the_path_with_everything_escaped() -> None:
    with pytest.raises(JsonLimit) as refused:
        codec.encode({"\x1b[2J\u202e": {"list": [0, float("nan")]}})

    assert str(refused.value).endswith(r", at $.\x1b[2J\u202e.list[1]")


def test_an_error_echoes_at_most_sixty_four_characters() -> None:
    with pytest.raises(JsonLimit) as refused:
        codec.encode({"k" * 1000: {"é" * 1000: [{"deep": float("nan")}]}})

    where = str(refused.value).partition(", at ")[2]
    assert where.endswith(r"\xe9[0].deep")
    assert len(where) == 64


def test_a_repeated_key_is_named_in_few_escaped_characters() -> None:
    key = "\u202e" + "k" * 1000

    with pytest.raises(JsonLimit, match=r"key '\\u202ek{58}' appears"):
        codec.decode(f'{{"{key}":1,"{key}":2}}')


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"b":2,"a":1}', "key 'a' appears more than once"),
        ("[NaN]", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e999", "Infinity are not JSON"),
        ("-1e999", "Infinity are not JSON"),
        ("9223372036854775808", "an int is outside"),
        ("1" * 41, "more than 40 digits"),
        ("0." + "1" * 40, "more than 40 digits"),
        ("1" * 5000, "more than 40 digits"),
        ('"\\ud800"', "lone surrogate"),
        ('"\\u0000"', r"U\+0000"),
        ('"\ud800"', "not UTF-8"),
        (b'"\xff"', "not UTF-8"),
        ('"a"'.encode("utf-16"), "not UTF-8"),
        ("\ufeff1", "byte order mark"),
        (b"\xef\xbb\xbf1", "byte order mark"),
        ("[1] x", "not JSON at character 4"),
        ("", "not JSON at character 0"),
        ('"\n"', "not JSON"),
        ("{'a': 1}", "not JSON"),
        ("[1,]", "not JSON"),
        ("01", "not JSON"),
        ("[" * 65 + "]" * 65, "64 levels"),
        ("[" * 100_000, "64 levels"),
        ('{"a":' * 100_000, "64 levels"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_foreign_text_that_is_not_strict_json_is_refused(text: str | bytes, reason: str) -> None:
    with pytest.raises(JsonLimit, match=reason):
        codec.decode(text)


@pytest.mark.parametrize(
    "text", [b" " * 1_048_576 + b"1", "é" * 524_289, "[" + "1e15," * 200_000 + "1]"], ids=["bytes", "text", "written"]
)
def test_foreign_text_over_a_mebibyte_before_or_after_writing_is_too_large(text: str | bytes) -> None:
    with pytest.raises(TooLarge, match="1,048,576 bytes"):
        codec.decode(text)


@pytest.mark.parametrize("text", [' {"a" : [ 1 ]}\n', b'{"a":[1]}', '{"\\u0061":[1]}'])
def test_foreign_text_may_be_spaced_and_escaped(text: str | bytes) -> None:
    assert codec.decode(text) == {"a": [1]}


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a":1}x', "\ud800"], ids=ascii)
def test_stored_text_that_is_not_json_is_corrupt(text: str) -> None:
    with pytest.raises(Corrupt):
        codec.parse(text)


def test_a_map_holds_texts_only() -> None:
    assert codec.parse_map('{"client_id":"c-1"}') == {"client_id": "c-1"}

    with pytest.raises(Corrupt):
        codec.parse_map('{"client_id":1}')


def test_a_request_may_be_larger_than_a_payload_and_is_as_strict() -> None:
    text = b'["' + b"x" * codec.MAX_BYTES + b'"]'

    assert codec.decode_request(text, 2 * codec.MAX_BYTES) == ["x" * codec.MAX_BYTES]
    with pytest.raises(TooLarge, match="1,048,576"):
        codec.decode_request(text, codec.MAX_BYTES)
    with pytest.raises(JsonLimit, match="more than once"):
        codec.decode_request(b'{"a": 1, "a": 2}', 100)
