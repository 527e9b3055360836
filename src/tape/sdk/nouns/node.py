"""A node of Tape, as a program talks to its ledgers: one noun for each."""

from tape.core.ledgers import Ledgers
from tape.sdk.nouns.budgets import Budgets
from tape.sdk.nouns.decisions import Decisions
from tape.sdk.nouns.effects import Dispatch, Effects
from tape.sdk.nouns.events import Events
from tape.sdk.nouns.gates import Gates
from tape.sdk.nouns.obligations import Obligations
from tape.sdk.nouns.runs import Runs
from tape.sdk.nouns.sessions import Sessions
from tape.sdk.nouns.timers import Timers
from tape.sdk.nouns.values import Values


class AsyncNode:
    """Nouns over ledgers, wherever those are."""

    def __init__(self, ledgers: Ledgers) -> None:
        self.events = Events(ledgers.events)
        self.runs = Runs(ledgers.runs, ledgers.compactions)
        self.decisions = Decisions(ledgers.decisions)
        self.effects = Effects(ledgers.effects)
        self.dispatch = Dispatch(ledgers.dispatch)
        self.obligations = Obligations(ledgers.obligations)
        self.gates = Gates(ledgers.gates, ledgers.runs)
        self.timers = Timers(ledgers.timers)
        self.budgets = Budgets(ledgers.budgets)
        self.values = Values(ledgers.values)
        self.sessions = Sessions(ledgers.sessions)
