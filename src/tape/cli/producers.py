"""The producers that a fork can name: the arena, and those that a command loads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from tape.cli.modules import search_current_folder

if TYPE_CHECKING:
    from tape.runs.producers import Producers


def load_producers(places: Iterable[str] = ()) -> Producers:
    """The arena and the producers of the named modules, which may lie in the current directory."""
    from tape.cli.demo.arena.producer import arena
    from tape.cli.demo.arena.world import decreed
    from tape.core.producer import Producer
    from tape.runs.producers import Producers, load

    names = tuple(places)
    search_current_folder(names)
    return Producers([Producer("arena", arena, check=decreed), *chain.from_iterable(map(load, names))])
