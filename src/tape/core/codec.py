"""Strict JSON: accepts only values that decode to the same value with the same types."""

import json
import math
from collections import Counter
from collections.abc import Iterable
from types import NoneType
from typing import NoReturn, TypeAlias, TypeVar

import msgspec

from tape.core.errors import Corrupt, JsonLimit, TooLarge

S = TypeVar("S")
JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

MAX_BYTES = 1_048_576
MAX_DEPTH = 64
MAX_KEYS = 10_000
MAX_DIGITS = 40
MIN_INT = -(2**63)
MAX_INT = 2**63 - 1

_MAX_ITEMS = MAX_BYTES // 2  # an item takes at least two bytes: itself and a separator
_ECHO = 64
_PLAIN = frozenset({str, bool, NoneType})

_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode
_read_map = msgspec.json.Decoder(dict[str, str]).decode


class _Refused(Exception):
    """Collects the path to the bad value while the recursion unwinds, so that good values cost nothing extra."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[object] = []

    def __str__(self) -> str:
        steps = (f".{step[:_ECHO]}" if isinstance(step, str) else f"[{step}]" for step in reversed(self.steps))
        path = ascii("$" + "".join(steps))[1:-1]
        return f"{self.reason}, at {path if len(path) <= _ECHO else '...' + path[3 - _ECHO :]}"


def encode(value: object) -> str:
    """The compact text of a JSON value; `parse` and `decode` return the same value."""
    try:
        _check(value, MAX_DEPTH, _MAX_ITEMS, False)
        text = _write_text(value)
    except _Refused as refused:
        raise JsonLimit(str(refused)) from None
    if len(text) > MAX_BYTES:
        raise _too_large()
    return text.decode()


def encode_optional(value: object) -> str:
    """The JSON of a value; no text for None."""
    return "" if value is None else encode(value)


def decode(text: str | bytes) -> JsonValue:
    """The value of JSON text from outside; `encode` accepts every value that this returns."""
    value = _load(_foreign(text))
    encode(value)
    return value


def decode_request(text: bytes, max_bytes: int) -> JsonValue:
    """The value of a request body that may hold many payloads; `encode` still checks the size of each."""
    return _load(_foreign(text, max_bytes))


def parse(text: str) -> JsonValue:
    """The value of text that `encode` wrote. Use `decode` for any other text."""
    try:
        value: JsonValue = _read(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Corrupt("stored text is not JSON") from error
    return value


def parse_map(text: str) -> dict[str, str]:
    """The same for an object whose values are all strings."""
    try:
        return _read_map(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Corrupt("stored text is not a map of texts") from error


def encode_state(state: object) -> str:
    """The text of one of our own values; `decode_state` returns an equal one."""
    try:
        return _write(state).decode()
    except UnicodeEncodeError:
        raise JsonLimit("a text holds a lone surrogate") from None


def decode_state(text: str, shape: type[S]) -> S:
    try:
        return msgspec.json.decode(text, type=shape)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError) as error:
        raise Corrupt(f"a cell holds no {shape.__name__}") from error


def size(value: object) -> int:
    """The bytes of one of our own values in an answer in JSON; its protobuf message is smaller."""
    return len(_write(value))


def _write_text(value: object) -> bytes:
    try:
        text = _write(value)
    except UnicodeEncodeError:
        _check(value, MAX_DEPTH, _MAX_ITEMS, True)
        raise
    if b"\\u0000" in text:  # or a backslash before u0000, which the thorough check accepts
        _check(value, MAX_DEPTH, _MAX_ITEMS, True)
    return text


def _check(value: object, levels: int, left: int, is_thorough: bool) -> int:
    """Refuses what is not JSON; only a thorough check looks into strings. Returns how many more items may follow."""
    if type(value) is dict:
        _check_keys(value, is_thorough)
        return _check_items(value.items(), levels, left - len(value), is_thorough)
    if type(value) is list:
        return _check_items(enumerate(value), levels, left - len(value), is_thorough)
    _check_scalar(value, is_thorough)
    return left


def _check_keys(value: dict[object, object], is_thorough: bool) -> None:
    if len(value) > MAX_KEYS:
        raise _Refused(f"an object has {len(value):,} keys and the limit is {MAX_KEYS:,}")
    for key in value:
        if type(key) is not str:
            raise _Refused(f"a key is {_escaped(type(key).__name__)}, not str")
        if is_thorough:
            _check_text(key)


def _check_items(items: Iterable[tuple[object, object]], levels: int, left: int, is_thorough: bool) -> int:
    if levels == 0:
        raise _Refused(f"it nests deeper than {MAX_DEPTH} levels")
    if left < 0:
        raise _too_large()
    for step, item in items:
        if is_thorough or type(item) not in _PLAIN:
            try:
                left = _check(item, levels - 1, left, is_thorough)
            except _Refused as refused:
                refused.steps.append(step)
                raise
    return left


def _check_scalar(value: object, is_thorough: bool) -> None:
    if type(value) is int:
        if not MIN_INT <= value <= MAX_INT:
            raise _Refused("an int is outside -2^63 to 2^63-1")
    elif type(value) is float:
        if not math.isfinite(value):
            raise _Refused("NaN and Infinity are not JSON")
    elif type(value) not in _PLAIN:
        raise _Refused(f"{_escaped(type(value).__name__)} is not a JSON type (dict, list, str, int, float, bool, None)")
    elif is_thorough and isinstance(value, str):
        _check_text(value)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise _Refused("a text holds U+0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("a text holds a lone surrogate") from None


def _escaped(text: str) -> str:
    return ascii(text[:_ECHO])[1:-1][:_ECHO]


def _foreign(text: str | bytes, max_bytes: int = MAX_BYTES) -> str:
    try:
        raw = text.encode() if isinstance(text, str) else text
        if len(raw) > max_bytes:
            raise _too_large(max_bytes)
        plain = raw.decode()
    except UnicodeError as error:
        raise JsonLimit(f"text is not UTF-8: {error.args[-1]}") from None
    if plain.startswith("\ufeff"):
        raise JsonLimit("text begins with a byte order mark; send it without")
    return plain


def _load(text: str) -> JsonValue:
    try:
        value: JsonValue = _strict.decode(text)
    except json.JSONDecodeError as error:
        raise JsonLimit(f"text is not JSON at character {error.pos}: {error.msg.lower()}") from None
    except RecursionError:
        raise JsonLimit(f"it nests deeper than {MAX_DEPTH} levels") from None
    return value


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise JsonLimit(f"key '{_escaped(key)}' appears more than once in an object")
    return value


def _int(literal: str) -> int:
    return int(_digits(literal))


def _float(literal: str) -> float:
    return float(_digits(literal))


def _digits(literal: str) -> str:
    if len(literal) > MAX_DIGITS and sum(map(str.isdigit, literal)) > MAX_DIGITS:
        raise JsonLimit(f"a number has more than {MAX_DIGITS} digits")
    return literal


def _constant(literal: str) -> NoReturn:
    raise JsonLimit(f"{literal} is not JSON")


def _too_large(max_bytes: int = MAX_BYTES) -> TooLarge:
    return TooLarge(f"JSON text is over the limit of {max_bytes:,} bytes")


_strict = json.JSONDecoder(object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant)
