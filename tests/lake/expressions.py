"""Random predicates, and random entries for which they are often true, false or an error."""

from collections.abc import Callable
from random import Random

from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import Entry, Event
from tape.core.ids import Epoch
from tape.core.predicate.predicate import Predicate

INTS = [0, 1, -1, 2, 3, 7, -5, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, 0.5, -2.5, 3.0, 0.1, 1e3, 1e20, 1e300, -1e300, 5e-324, float(2**53), float(2**63), 12.75]
TEXTS = [
    "", "a", "abc", "error", "Error", "é", "é😀", "\uffff", "😀", "7", "-5", "+3", " 2 ", "2.5", "1e3", "0x10", "inf",
    "nan", "1e400", "true", "False", "t", "9223372036854775808", "x y", "a.b", "a\nb", "b\n", "it's", 'say "a"', "a\\b",
    "${x}", "%_", "aab", "v12", "２",
]  # fmt: skip
KEYS = ["k", "q", "naïve key", "it's", "a.b", "1", "", "$", "K"]
PATTERNS = [
    "", "a", "^a", "b$", "^a.b$", "^.$", "^[a-c]+$", "[^a]", "^(a|b)", "^(?:error|Error)$", "a|b", r"\\d",
    r"^\\w+$", r"\\s", "[0-9]{2}", "a?b", "^v[0-9]+$", r"^\\-?\\d", "a+b", "(ab)+", "(?i)ERROR",
    r"\\bx", "é", "^.*b", "[a-z]{1,3}c", r"\\.", "x y$", "[^a-z]$", r"[\\-\\]x]", "^[-a]", "a{2}b",
]  # fmt: skip
FIELDS = [f"payload.{key}" for key in "ijdsbxylm"]
DEEPER = "payload payload.m.k payload.x.k payload.l[0] payload.l[1] payload.l[0].k dyn(seq)".split()
NUMBERS = "payload.i payload.d seq global_seq size(payload.l) size(payload.s) size(payload.x) int(payload.s)".split()
WORDS = "payload.s payload.t payload.x kind type subject prev_value_json".split()
RANGES = "payload.l payload.l payload.x payload.m [1,2] ['a','b']".split()
BODIES = "e==1 e>0 e!='a' e.k==1 has(e.k) e e==payload.x e.size()>1 double(e)>1.0".split()
ATOMS = [
    *"ab-.$^|&",
    r"\\.",
    r"\\-",
    r"\\d",
    r"\\S",
    "[a-c]",
    "[^a]",
    r"[\\-\\]a]",
    "[-a]",
    "[&&a]",
    "[a|$]",
    "(a|b)",
    "(?:-)",
]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "+?"]


class RandomPredicates:
    """Makes predicates and payloads; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pick = self.random.choice

    def entries(self, amount: int) -> list[Entry]:
        return [self._entry(number) for number in range(1, amount + 1)]

    def _entry(self, number: int) -> Entry:
        event = self._raw() if self.random.random() < 0.02 else self._event(number % 3 + 1)
        return event.at(number, self.pick([1, 2, 7]), 1_700_000_000_000 + number, 0, Epoch(1))

    def _raw(self) -> Event:
        return Event(run_id="r-1", payload=b"\x00raw", content_type="application/octet-stream")

    def _event(self, schema_version: int) -> Event:
        payload = self.payload() if self.random.random() < 0.97 else self.value()
        kind, run_id = self.pick(["order.placed", "tick"]), self.pick(["r-1", "r-2"])
        return Event(run_id=run_id, type=kind, payload=payload, schema_version=schema_version)

    def payload(self) -> dict[str, JsonValue]:
        made: dict[str, Callable[[], JsonValue]] = {
            "i": self._int, "j": self._int, "d": self._double, "s": self._text, "t": self._text, "b": self._bool,
            "l": self._list, "m": self._map, "x": self.value, "y": self.value,
        }  # fmt: skip
        kept = {key: make for key, make in made.items() if self.random.random() < 0.97}
        return {key: make() if self.random.random() < 0.95 else self.value() for key, make in kept.items()}

    def value(self) -> JsonValue:
        kinds: list[Callable[[], JsonValue]] = [self._scalar, self._scalar, self._list, self._map]
        return self.pick(kinds)()

    def _int(self) -> int:
        return self.pick(INTS) if self.random.random() < 0.7 else self.random.randint(-9, 9)

    def _double(self) -> float:
        return self.pick(DOUBLES) if self.random.random() < 0.7 else self.random.uniform(-10, 10)

    def _text(self) -> str:
        return self.pick(TEXTS)

    def _bool(self) -> bool:
        return self.pick([True, False])

    def _scalar(self) -> JsonValue:
        return self.pick([self._int(), self._double(), self._text(), self._bool(), None])

    def _list(self) -> list[JsonValue]:
        elements = self.pick([self._scalar, self._int, self._text, self._map])
        return [elements() for _ in range(self.pick([0, 1, 2, 3, 5]))]

    def _map(self) -> dict[str, JsonValue]:
        return {self.pick(KEYS): self._scalar() for _ in range(self.pick([0, 1, 2, 4]))}

    def predicate(self) -> str:
        """One that may be registered."""
        while True:
            text = self.condition(self.pick([0, 1, 1, 2]))
            if is_registered(text):
                return text

    def condition(self, depth: int) -> str:
        if depth == 0:
            return self.atom()
        inner = [self.condition(depth - 1) for _ in range(3)]
        shapes = ["({0} && {1})", "({0} && {1})", "({0} || {1})", "!({0})", "({0} ? {1} : {2})", "({0}) == ({1})"]
        return self.pick(shapes).format(*inner)

    def atom(self) -> str:
        comparisons = [self._comparison, self._comparison, self._comparison, self._mixed, self._mixed]
        others = [self._presence, self._membership, self._search, self._regex, self._loop, self._truth]
        return self.pick([*comparisons, *others])()

    def _comparison(self) -> str:
        side = self.pick([self.number, self.number, self.text, self.anything])
        return f"{side()} {self.pick(['==', '!=', '<', '<=', '>', '>='])} {side()}"

    def _mixed(self) -> str:
        return f"{self.anything()} {self.pick(['==', '!=', '!=', '>='])} {self.pick([self.literal, self.anything])()}"

    def _presence(self) -> str:
        return f"has({self.pick(['payload', 'payload.m', 'payload.x', 'payload.m.k'])}.{self.pick('ijdsblmxykq')})"

    def _membership(self) -> str:
        item, literals = self.anything(), ", ".join(self.literal() for _ in range(self.pick([0, 1, 3])))
        container = self.pick([f"[{literals}]", f"[{literals}]", "payload.l", "payload.m", "payload.x"])
        return f"{self.pick([item, self.literal(), 'type'])} in {container}"

    def _search(self) -> str:
        method = self.pick(["startsWith", "endsWith", "contains"])
        part = self.pick([quoted(self.pick(["", "a", "é", "b\n", "r"])), "kind", "string(payload.i)"])
        return f"{self.text()}.{method}({part})"

    def _regex(self) -> str:
        return f"{self.text()}.matches('{self.pick(PATTERNS)}')"

    def regex(self) -> str:
        """A predicate that matches the payload itself."""
        while True:
            atoms = (self.pick(ATOMS) + self.pick(REPEATS) for _ in range(self.pick([1, 2, 3])))
            text = f"payload.matches('{self.pick(['', '^'])}{''.join(atoms)}{self.pick(['', '$'])}')"
            if is_registered(text):
                return text

    def short_texts(self, amount: int) -> list[Entry]:
        texts = (
            "".join(self.random.choices("ab-.$&|]\n\r\u20281é😀", k=self.pick([0, 1, 2, 3, 5]))) for _ in range(amount)
        )
        return [Event(run_id="r", payload=text).at(place, place, 0, 0, Epoch(1)) for place, text in enumerate(texts, 1)]

    def _loop(self) -> str:
        macro = self.pick(["all", "exists", "exists_one"])
        return f"{self.pick(RANGES)}.{macro}(e, {self.pick(BODIES)})"

    def _truth(self) -> str:
        return self.pick(["payload.b", "payload.b", "payload.x", "bool(payload.s)", "true", "seq < 9"])

    def number(self) -> str:
        sums = self._whole_sum(), self._double_sum()
        conversions = [f"int({self.anything()})", f"double({self.anything()})"]
        literals = [self.int_literal(), self.double_literal()]
        return self.pick([self.pick(choices) for choices in (NUMBERS, sums, conversions, literals)])

    def _whole_sum(self) -> str:
        return self._sum(self.pick("+-*/%"), self.pick(["payload.i", "payload.j", "seq"]), self.int_literal())

    def _double_sum(self) -> str:
        field = self.pick(["payload.d", "double(payload.i)", "double(payload.s)"])
        return self._sum(self.pick("+-*/"), field, self.double_literal())

    def _sum(self, operator: str, field: str, literal: str) -> str:
        shapes = ["({1} {0} {2})", "({2} {0} {1})", "({1} {0} {1})", "(-{1} {0} {2})", "(({1} {0} {2}) {0} {2})"]
        return self.pick(shapes).format(operator, field, literal)

    def text(self) -> str:
        literal = quoted(self.pick(TEXTS))
        made = [f"string({self.anything()})", f"(payload.s + {literal})", "(payload.s + payload.t)"]
        return self.pick([*WORDS, literal, self.pick(made)])

    def anything(self) -> str:
        key = f"payload.m[{quoted(self.pick(KEYS))}]"
        choice = "(payload.b ? payload.x : payload.y)"
        return self.pick([*FIELDS, *FIELDS, self.pick([*DEEPER, key]), choice])

    def literal(self) -> str:
        words = self.pick(["true", "false", "null", "1u"])
        return self.pick([self.int_literal(), self.double_literal(), quoted(self.pick(TEXTS)), words])

    def int_literal(self) -> str:
        return str(self._int())

    def double_literal(self) -> str:
        return repr(self._double())


def quoted(text: str) -> str:
    """A CEL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def is_registered(text: str) -> bool:
    """Whether a predicate is accepted at all."""
    try:
        Predicate(text)
    except UsageError:
        return False
    return True
