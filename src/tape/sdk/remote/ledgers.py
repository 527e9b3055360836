"""All ledgers of a server, as a program reaches them over a wire."""

from tape.sdk.remote.channel import Channel
from tape.sdk.remote.effects import Decisions, Dispatch, Effects
from tape.sdk.remote.events import Events
from tape.sdk.remote.gates import Budgets, Gates, Timers
from tape.sdk.remote.obligations import Obligations
from tape.sdk.remote.runs import Runs
from tape.sdk.remote.sessions import Sessions
from tape.sdk.remote.values import Values


class Ledgers:
    """The same ledgers as a node in this process has."""

    def __init__(self, channel: Channel) -> None:
        self.events = Events(channel)
        self.runs = Runs(channel)
        self.compactions = self.runs
        self.decisions = Decisions(channel)
        self.effects = Effects(channel)
        self.dispatch = Dispatch(channel)
        self.obligations = Obligations(channel)
        self.gates = Gates(channel)
        self.timers = Timers(channel)
        self.budgets = Budgets(channel)
        self.values = Values(channel)
        self.sessions = Sessions(channel)
