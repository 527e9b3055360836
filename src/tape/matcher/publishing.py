"""Handlers that publish matches to one peer."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tape.bridges.handler import BridgeHandler
from tape.bridges.peer import PeerConnection
from tape.bridges.target import Target
from tape.core.errors import UsageError
from tape.core.ports import Reader
from tape.core.reaction import HandlerKind, Reaction
from tape.core.registration import ReactionState

Route: TypeAlias = Callable[[Reaction], Target | None]


def target_of(reaction: Reaction) -> Target | None:
    """The target that a reaction publishes to; None if it has none, or one that no bridge supports."""
    if reaction.handler_kind is not HandlerKind.PUBLISH:
        return None
    try:
        return Target.parse(reaction.publish_target)
    except UsageError:
        return None


def routed_to(target: Target, reaction_id: str = "") -> Route:
    """A route to one target: for the reactions that publish to it, or for the named reaction only."""

    def route(reaction: Reaction) -> Target | None:
        if reaction_id:
            return target if reaction.reaction_id == reaction_id else None
        return target if target_of(reaction) == target else None

    return route


class PublishHandlers(Mapping[str, BridgeHandler]):
    """The handlers of all reactions that publish to one peer."""

    def __init__(
        self,
        states: Callable[[], Mapping[str, ReactionState]],
        peer: PeerConnection,
        journal: Reader,
        route: Route = target_of,
    ) -> None:
        self._states = states
        self._peer = peer
        self._journal = journal
        self._route = route
        self._senders: dict[
            str, BridgeHandler
        ] = {}  # what was claimed is sent, although its reaction may be gone by then

    def __getitem__(self, reaction_id: str) -> BridgeHandler:
        return self._senders[reaction_id]

    def __iter__(self) -> Iterator[str]:
        found = {name: self._route(state.reaction) for name, state in self._states().items()}
        ours = {name: to for name, to in found.items() if to is not None and to.connection == self._peer.name}
        self._senders |= {name: BridgeHandler(self._peer, target, self._journal) for name, target in ours.items()}
        return iter(ours)

    def __len__(self) -> int:
        return len(list(iter(self)))
