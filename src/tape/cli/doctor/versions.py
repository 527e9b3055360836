"""`tape doctor`: whether the installed packages have supported versions."""

import re
from collections.abc import Callable, Iterator, Sequence
from operator import ge, gt, le, lt
from typing import Final, NamedTuple

from tape.cli import output
from tape.cli.doctor.finding import Finding

_REQUIREMENT: Final = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)(?:;.*extra == ['\"](\w+)['\"])?")
_CLAUSE: Final = re.compile(r"\s*(==|>=|<=|<|>)\s*([\d.]+?)(\.\*)?\s*")
_ORDER: Final = {">=": ge, "<=": le, "<": lt, ">": gt}

Versions = Callable[[str], str | None]


class _Misfit(NamedTuple):
    sentence: str
    extra: str | None


def versions_finding(requirements: Sequence[str], version: Versions) -> Finding:
    """Checks the installed packages only; a package that is missing is no finding."""
    wanted = [match for each in requirements if (match := _REQUIREMENT.match(each))]
    there = [(match, found) for match in wanted if (found := version(match[1])) is not None]
    misfits = list(_misfits(there))
    if not misfits:
        return Finding("versions", f"{output.count(len(there), 'package fits', 'packages fit')}")
    extras = ",".join(sorted({each.extra for each in misfits if each.extra}))
    fix = f"pip install 'tape-bus[{extras}]'" if extras else "pip install tape-bus"
    return Finding("versions", "; ".join(each.sentence for each in misfits), "fail", f"{fix} brings those that do")


def _misfits(there: Sequence[tuple[re.Match[str], str]]) -> Iterator[_Misfit]:
    for match, found in there:
        asked = match[2].strip()
        if not all(_fits(found, clause) for clause in asked.split(",") if clause):
            yield _Misfit(f"{match[1]} {found} is not {asked}", match[3])


def _fits(version: str, clause: str) -> bool:
    asked = _CLAUSE.fullmatch(clause)
    if asked is None:
        return True  # a clause that only an installer understands
    word, wanted, is_family = asked[1], _numbers(asked[2]), asked[3] is not None
    found = _numbers(version)
    if word != "==":
        return bool(_ORDER[word](_padded(found), _padded(wanted)))
    return found[: len(wanted)] == wanted if is_family else _padded(found) == _padded(wanted)


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without a pre-release suffix."""
    leading = re.match(r"[\d.]*", version)
    return tuple(int(part) for part in (leading[0] if leading else "").split(".") if part)


def _padded(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, 0, 0, 0, 0)[:4]
