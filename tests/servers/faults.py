"""A way to an HTTP server on which everything goes wrong that can: resets, half-closes, crumbs, stalls, a thin line.

async with fault_proxy(port, in_turn(WaitResult(to_client=Trouble(ends_after=100)))) as proxy:
    ...  # the first connection to proxy.port is reset when 100 bytes have come back; the next ones are clean
"""

import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import TypeAlias, assert_never

import anyio

from tests.servers.relay import End, Relay

PIECES_PER_S = 20  # a thin line is an even trickle, not one gush a second
CRUMBS = (1, 7, 1_000, 65_536)
LONGEST_STALL_S = 0.1


class Ending(Enum):
    """How a connection ends before its time."""

    RESET = auto()
    """Both ends get an error, and may lose what they were already sent."""

    HALF_CLOSE = auto()
    """The receiver reads the end of the data; the sender notices nothing, and the other direction goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What one direction of a connection suffers, and after how many bytes; by itself, nothing."""

    at_most: int = 65_536
    """Bytes in one piece."""

    bytes_per_s: float = math.inf
    stalls_after: int | None = None
    stall_s: float = math.inf
    ends_after: int | None = None
    ending: Ending = Ending.RESET

    def __post_init__(self) -> None:
        assert self.at_most >= 1 and self.bytes_per_s > 0 and self.stall_s >= 0

    def room(self, passed: int) -> int:
        """How many bytes may come next, in one piece and before anything happens."""
        events = [place for place in (self.stalls_after, self.ends_after) if place is not None and place > passed]
        even = max(1.0, self.bytes_per_s / PIECES_PER_S)
        return int(min(self.at_most, even, *(place - passed for place in events)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitResult:
    """What one connection suffers."""

    to_server: Trouble = Trouble()
    to_client: Trouble = Trouble()


Plan: TypeAlias = Callable[[int], WaitResult]  # what the n-th connection suffers, counted from 0


def always(passage: WaitResult) -> Plan:
    return lambda _: passage


def in_turn(*passages: WaitResult) -> Plan:
    """The first connections get one each; all later ones are clean."""
    return lambda number: passages[number] if number < len(passages) else WaitResult()


def seeded(seed: int, *, request: int = 1_000, answer: int = 20_000) -> Plan:
    """Anything, at any of the first bytes; the same seed gives the n-th connection the same."""

    def plan(number: int) -> WaitResult:
        chance = Random(f"{seed}/{number}")
        return WaitResult(to_server=any_trouble(chance, request), to_client=any_trouble(chance, answer))

    return plan


def any_trouble(chance: Random, within: int) -> Trouble:
    return Trouble(
        at_most=chance.choice(CRUMBS),
        stalls_after=chance.choice((None, chance.randrange(within))),
        stall_s=chance.uniform(0, LONGEST_STALL_S),
        ends_after=chance.choice((None, chance.randrange(within))),
        ending=chance.choice(list(Ending)),
    )


def fault_proxy(port: int, plan: Plan) -> AbstractAsyncContextManager["FaultProxy"]:
    """Stands before the loopback server on a port for as long as its block."""
    return FaultProxy(port, plan).open()


class FaultProxy(Relay):
    """Forwards connections to a server, each with the troubles that were planned for it."""

    def __init__(self, port: int, plan: Plan) -> None:
        super().__init__("127.0.0.1", port)
        self._plan = plan
        self.connections = 0
        """How many have come so far."""

    @property
    def port(self) -> int:
        return self._port

    async def _carry(self, client: End, server: End) -> None:
        passage = self._plan(self.connections)
        self.connections += 1
        async with anyio.create_task_group() as ways:
            ways.start_soon(suffer, passage.to_server, client, server)
            ways.start_soon(suffer, passage.to_client, server, client)


async def suffer(trouble: Trouble, source: End, target: End) -> None:
    """Moves what comes, in the way of the trouble, until it ends or the trouble ends it."""
    passed = 0
    while passed != trouble.ends_after:
        if passed == trouble.stalls_after:
            await anyio.sleep(trouble.stall_s)
        piece = await source.reader.read(trouble.room(passed))
        if not piece:
            target.writer.write_eof()
            return
        target.writer.write(piece)
        await target.writer.drain()
        await anyio.sleep(len(piece) / trouble.bytes_per_s)
        passed += len(piece)
    await end(trouble.ending, source, target)


async def end(ending: Ending, source: End, target: End) -> None:
    match ending:
        case Ending.RESET:
            raise ConnectionResetError
        case Ending.HALF_CLOSE:
            target.writer.write_eof()
            while await source.reader.read(65_536):
                pass
        case _:
            assert_never(ending)
