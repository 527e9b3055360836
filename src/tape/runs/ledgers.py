"""All ledgers of a store, in this process."""

from tape.bus.journal import Journal
from tape.core.codec import JsonValue
from tape.core.event import Entry
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId, Seq
from tape.core.ports import Store
from tape.operations.handlers import Handlers
from tape.runs import fork_ledgers
from tape.runs.budgets import Budgets
from tape.runs.decisions import Decisions
from tape.runs.dispatch import Dispatch
from tape.runs.effects import Effects
from tape.runs.events import Events
from tape.runs.gates import Gates
from tape.runs.journal_runs import JournalRuns
from tape.runs.ledger_store import LedgerStore
from tape.runs.obligations import Obligations
from tape.runs.run_events import RunEvents
from tape.runs.runs import Runs
from tape.runs.sessions import Sessions
from tape.runs.timers import Timers
from tape.runs.values import Values, ValueWatch


class LocalLedgers(Handlers):
    """Runs the operations of ledgers and of the journal's runs, and those of `others` too."""

    def __init__(self, store: Store, journal: Journal, *others: object) -> None:
        ledger_store = LedgerStore(store, journal)
        self.events = Events(journal)
        self.obligations = Obligations(ledger_store)
        self.values = Values(ledger_store)
        self._store = ledger_store
        ledgers = (Runs, Decisions, Effects, Dispatch, Gates, Timers, Budgets, Sessions)
        super().__init__(
            self.obligations, self.values, *(ledger(ledger_store) for ledger in ledgers),
            JournalRuns(journal, store.runs, self), RunEvents(journal, store.runs), *others,
        )  # fmt: skip

    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> ValueWatch:
        return await self.values.watch(namespace, key, from_version)

    async def check(self) -> None:
        """Refuses a store without ledgers."""
        await self._store.now_ms()

    async def last_seq(self, run_id: RunId) -> Seq:
        """The run's last seq."""
        return (await self._store.head(run_id)).last_seq

    async def fork(
        self,
        parent_run_id: RunId,
        at_seq: int,
        effects: EffectPolicy,
        *,
        mutation: JsonValue = None,
        reason: str | None = None,
    ) -> list[Entry]:
        """Creates a child with what its parent had settled; the policy says what happens to effects in it."""
        return await fork_ledgers.fork(self._store, parent_run_id, at_seq, effects, mutation, reason)
