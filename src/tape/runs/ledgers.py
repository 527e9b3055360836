"""All ledgers of a store, as this process keeps them."""

from tape.bus.journal import Journal
from tape.core.ports import Store
from tape.runs.budgets import Budgets
from tape.runs.decisions import Decisions
from tape.runs.desk import Desk
from tape.runs.dispatch import Dispatch
from tape.runs.effects import Effects
from tape.runs.gates import Gates
from tape.runs.obligations import Obligations
from tape.runs.runs import Runs
from tape.runs.sessions import Sessions
from tape.runs.timers import Timers
from tape.runs.values import Values


class Ledgers:
    """What runs have decided, done, owe, wait for and may spend; and what is known outside of them."""

    def __init__(self, store: Store, journal: Journal) -> None:
        desk = Desk(store, journal)
        self.runs = Runs(desk)
        self.compactions = self.runs
        self.decisions = Decisions(desk)
        self.effects = Effects(desk)
        self.dispatch = Dispatch(desk)
        self.obligations = Obligations(desk)
        self.gates = Gates(desk)
        self.timers = Timers(desk)
        self.budgets = Budgets(desk)
        self.values = Values(desk)
        self.sessions = Sessions(desk)
        self._desk = desk

    async def check(self) -> None:
        """Refuses a store that has none."""
        await self._desk.now_ms()
