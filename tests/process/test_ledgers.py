"""SIGKILL in the middle of work: no ledger is left half-changed, and work is finished once."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import anyio
import pytest

from tape.compose import aconnect, open_backend
from tape.core.effect import EffectStatus
from tape.core.event import Entry
from tape.core.run_state import RunStatus
from tape.operations.budgets import GetBudget
from tape.operations.effects import ListEffects
from tape.operations.gates import GetGate
from tape.operations.obligations import ListObligations
from tape.operations.runs import GetRun
from tape.operations.values import GetValue
from tape.operations.whole_list import read_all
from tape.runs.ledgers import LocalLedgers
from tests.conftest import Scale
from tests.deadlines import DEADLINE_S
from tests.process.ledger_agent import STEPS
from tests.process.processes import Processes

KILLS = 4


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, processes: Processes) -> str:
    if request.param == "sqlite":
        return processes.url
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_step_is_replaced_and_the_bank_has_one_wire(
    url: str, processes: Processes, tmp_path: Path, step: str
) -> None:
    bank = tmp_path / "bank"
    bank.mkdir()
    dying = processes.start("ledger_agent", url, bank, "w1", "--dies-at", step)
    processes.wait(lambda: not dying.is_running, f"it dies when {step}", DEADLINE_S)

    processes.start("ledger_agent", url, bank, "w2").finish(DEADLINE_S)

    assert len(list(bank.iterdir())) == 1
    assert anyio.run(ended, url) == (RunStatus.TERMINAL, [EffectStatus.CONFIRMED], 1)


async def ended(url: str) -> tuple[RunStatus, list[EffectStatus], int]:
    async with aconnect(url) as node:
        run = await node.runs.get(await node.runs.newest("treasury", "ann", "s"))
        effects = [effect.status for effect in await node.effects.list_all(run.run_id)]
        return run.status, effects, len(await node.decisions.list_all(run.run_id))


def test_kill_9_leaves_no_half_state_in_any_ledger(url: str, processes: Processes, scale: Scale) -> None:
    for _ in range(scale(KILLS)):
        ledger_writer = processes.start("ledger_writer", url, processes.log("ledgers"))
        processes.wait_for_line("ledgers")
        time.sleep(Random().uniform(0, 0.05))
        ledger_writer.kill()

    runs, versions = anyio.run(read, url)

    assert len(runs) > KILLS
    assert {run_id: odd for run_id, odd in runs.items() if odd} == {}
    assert versions[0] == versions[1]


async def read(url: str) -> tuple[Mapping[str, object], tuple[int, int]]:
    """What does not agree in each run, and the versions of the value, by its cell and by its entries."""
    async with open_backend(url) as backend:
        ledgers = LocalLedgers(backend.store, backend.journal)
        entries_of: dict[str, list[Entry]] = defaultdict(list)
        async for entry in backend.journal.stream(follow=False):
            entries_of[entry.run_id].append(entry)
        values = [entries for run_id, entries in entries_of.items() if run_id.startswith("tape.")]
        version = (await ledgers.call(GetValue(namespace="books", key="n"))).version
        of_runs = {run_id: entries for run_id, entries in entries_of.items() if not run_id.startswith("tape.")}
        return {run: await odd(ledgers, run, entries) for run, entries in of_runs.items()}, (version, len(values[0]))


async def odd(ledgers: LocalLedgers, run_id: str, entries: Sequence[Entry]) -> object:
    last = {kind: [entry.type for entry in entries if entry.kind == kind][-1:] for kind in {e.kind for e in entries}}
    count = Counter(entry.subject.split("/")[2] for entry in entries if entry.type == "registered")
    run, budget = await ledgers.call(GetRun(run_id=run_id)), await ledgers.call(GetBudget(run_id=run_id))
    effects = await read_all(ledgers, ListEffects(run_id=run_id))
    owed = await read_all(ledgers, ListObligations(run_id=run_id))
    gate = await ledgers.call(GetGate(run_id=run_id, gate="gate"))
    facts = {
        "run": [run.status.value] == last["run"],
        "effect": [effect.status.value for effect in effects] == last.get("effect", []),
        "obligations": len(owed) == count["obligation"] == sum(e.status is EffectStatus.CONFIRMED for e in effects),
        "obligation": not owed or last["obligation"][0] in ("registered", owed[0].status.value),
        "gate": gate is None or last["gate"] == ["released" if gate.resolutions else "waiting"],
        "budget": bool(budget.reserved.usd_micros) is ("reserved" in last.get("budget", [])),
    }
    return [name for name, is_so in facts.items() if not is_so]
