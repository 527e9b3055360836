"""Handlers that start agents: an entry starts one run, and its task is done when that run has ended."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing

from tape.bus.journal import Journal
from tape.core.caller import Caller
from tape.core.reaction import HandlerKind
from tape.core.registration import ReactionState
from tape.core.run_state import Invocation
from tape.core.subject import canonical
from tape.operations.runs import BeginRun, GetRun
from tape.runs.ledgers import LocalLedgers
from tape.work.answers import Dead
from tape.work.envelope import Envelope
from tape.work.handler import Handler


class AgentHandlers(Mapping[str, Handler]):
    """One handler for each reaction that starts an agent now."""

    def __init__(
        self,
        states: Callable[[], Mapping[str, ReactionState]],
        ledgers: LocalLedgers,
        journal: Journal,
        *,
        is_waiting: bool = True,
    ) -> None:
        self._states = states
        self._ledgers = ledgers
        self._journal = journal
        self._is_waiting = is_waiting
        self._handler = Handler(self._start, takes=(Envelope,))

    def __getitem__(self, reaction_id: str) -> Handler:
        return self._handler

    def __iter__(self) -> Iterator[str]:
        states = self._states().items()
        return iter([name for name, state in states if state.reaction.handler_kind is HandlerKind.AGENT])

    def __len__(self) -> int:
        return len(list(iter(self)))

    async def _start(self, envelope: Envelope) -> None:
        """Begins the run, unless an earlier attempt has begun it; waits for its end if `is_waiting`."""
        state = self._states().get(envelope.reaction_id)
        if state is None or state.reaction.handler_kind is not HandlerKind.AGENT:
            raise Dead("its reaction starts no agent any more")
        order = BeginRun(of=invocation(state.reaction.agent_app, envelope.reaction_id, envelope.global_seq))
        await self._ledgers.call(order, Caller(cause=envelope.global_seq))
        if self._is_waiting:
            await self._ended(order.of)

    async def _ended(self, of: Invocation) -> None:
        subject = canonical("run", "any", of.app, of.user, of.session, of.run_id).replace("/any/", "/*/", 1)
        async with aclosing(self._journal.stream(subject=subject)) as stream:
            async for _ in stream:
                if not (await self._ledgers.call(GetRun(run_id=of.run_id))).is_active:
                    return


def invocation(app: str, reaction_id: str, global_seq: int) -> Invocation:
    """The invocation of an agent for an entry; it is the same in every process."""
    return Invocation(app=app, invocation=f"react-{reaction_id}-{global_seq}")
