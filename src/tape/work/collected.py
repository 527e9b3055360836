"""The reactions that decorators have collected, with their handlers. Importing a module registers nothing."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any, Final

from tape.core.errors import UsageError
from tape.core.reaction import HandlerKind, Reaction
from tape.work.handler import Handler, handler
from tape.work.processes import check_importable

MAX_ID: Final = 128
_NOT_IN_IDS: Final = re.compile("[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Collected:
    """A reaction, and the function that was decorated."""

    reaction: Reaction
    handler: Handler


class Collection:
    """Reactions by their ids; a module that is imported again replaces its own."""

    def __init__(self) -> None:
        self._collected: dict[str, Collected] = {}

    def __iter__(self) -> Iterator[Collected]:
        return iter(tuple(self._collected.values()))

    def __len__(self) -> int:
        return len(self._collected)

    def add(
        self, function: Callable[..., Any], batch: int, options: Mapping[str, Any], *, is_process: bool = False
    ) -> Reaction:
        if is_process:
            check_importable(function)
        named = {"name": function.__qualname__, **options}
        chosen = named.pop("reaction_id", None) or default_id(function, named)
        reaction = Reaction(reaction_id=chosen, **named)
        timeout = timedelta(milliseconds=reaction.timeout_ms)
        made = handler(function, batch, timeout=timeout, is_process=is_process)
        self._collected[reaction.reaction_id] = Collected(reaction, made)
        return reaction

    def clear(self) -> None:
        self._collected.clear()

    @property
    def handlers(self) -> dict[str, Handler]:
        """The functions that a worker calls; reactions that start agents or publish have none."""
        local = [each for each in self if each.reaction.handler_kind is HandlerKind.TASK]
        return {each.reaction.reaction_id: each.handler for each in local}


collected: Final = Collection()
"""The collection that the decorators of this process fill."""


def default_id(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """The id of a reaction without a given one: the same for the same function, pattern, kind and target."""
    kind = int(options.get("handler_kind", HandlerKind.TASK))
    target = options.get("agent_app") or options.get("publish_target") or ""
    digest = sha256(f"{options.get('subject_pattern', '')}\x1f{kind}\x1f{target}".encode()).hexdigest()[:8]
    name = _NOT_IN_IDS.sub("-", f"{function.__module__}.{function.__qualname__}").lstrip("._-")
    if not name:
        raise UsageError("a function without a name needs a reaction_id")
    return f"{name[: MAX_ID - 9]}.{digest}"
