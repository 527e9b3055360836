"""Names the known name that an unknown one was probably meant to be."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from tape.core.errors import quoted

MAX_NAMED: Final = 12
_CLOSE: Final = 0.7


def near_miss(name: str, known: Collection[str]) -> str:
    """What to say after "there is no …": the name that was probably meant, or those that there are."""
    plain = {_plain(each): each for each in known}
    close = get_close_matches(_plain(name)[:64], plain, n=1, cutoff=_CLOSE)
    if close:
        return f"you may mean {plain[close[0]]}"
    if not known:
        return "there are none"
    named = sorted(known)
    more = f" and {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
    return f"there {'is' if len(named) == 1 else 'are'} {', '.join(named[:MAX_NAMED])}{more}"


def unknown_name(what: str, name: str, known: Collection[str]) -> str:
    """The sentence about a name that does not exist."""
    return f"there is no {what} {quoted(name)[1:-1]}; {near_miss(name, known)}"


def _plain(name: str) -> str:
    """The name without what is most often confused: case, hyphens and underscores."""
    return name.lower().replace("_", "").replace("-", "")
