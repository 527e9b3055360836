"""A node of Tape, as a program talks to its ledgers: one noun for each."""

from typing import TypeVar

from tape.core.app import ANY, check_app
from tape.core.caller import PLAIN, Caller
from tape.operations.ledgers import Ledgers
from tape.operations.operation import OperationRequest
from tape.sdk.nouns.budgets import Budgets
from tape.sdk.nouns.decisions import Decisions
from tape.sdk.nouns.effects import Dispatch, Effects
from tape.sdk.nouns.events import Events
from tape.sdk.nouns.gates import Gates
from tape.sdk.nouns.obligations import Obligations
from tape.sdk.nouns.outbox import Outbox
from tape.sdk.nouns.reactions import Reactions
from tape.sdk.nouns.runs import Runs
from tape.sdk.nouns.sessions import Sessions
from tape.sdk.nouns.tasks import Tasks
from tape.sdk.nouns.timers import Timers
from tape.sdk.nouns.values import Values

R = TypeVar("R")


class AsyncNode:
    """Nouns over ledgers, wherever those are, for the program of an app.

    Effects, obligations and timers are written for that app, and only work that it may serve is listed as due or
    claimed. "" is any app.
    """

    def __init__(self, ledgers: Ledgers, app: str = ANY) -> None:
        self.app = check_app(app)
        self._ledgers = ledgers
        self.events = Events(ledgers)
        self.runs = Runs(ledgers)
        self.decisions = Decisions(ledgers)
        self.effects = Effects(ledgers, app)
        self.dispatch = Dispatch(ledgers, app)
        self.obligations = Obligations(ledgers, app)
        self.gates = Gates(ledgers)
        self.timers = Timers(ledgers, app)
        self.budgets = Budgets(ledgers)
        self.values = Values(ledgers)
        self.sessions = Sessions(ledgers)
        self.reactions = Reactions(ledgers)
        self.tasks = Tasks(ledgers)
        self.outbox = Outbox(ledgers)

    async def call(self, request: OperationRequest[R], caller: Caller = PLAIN) -> R:
        """Runs an operation by its request; the nouns have a method for each."""
        return await self._ledgers.call(request, caller)
