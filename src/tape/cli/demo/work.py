"""The third part of the demo: a reaction handles orders; one dies, is fixed and replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

import anyio

from tape.bus.journal import Journal
from tape.cli import output
from tape.cli.demo.report import Check
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.core.run import RunMeta
from tape.core.task import Task, TaskId, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.handler import handler

AMOUNTS: Final = (12, 40, 5, 99, 25, 60)
MIN_AMOUNT: Final = 10
PREDICATE: Final = f"payload.amount >= {MIN_AMOUNT}"
WRONG: Final = 4  # the order with the unknown street
REASON: Final = "no such street"
DEADLINE_S: Final = 30.0


class WorkResult(NamedTuple):
    """The results for each order, the checks, and the ids to look at."""

    lines: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]
    reaction_id: str
    task_id: str


class _Shop:
    """Ships orders; one street is unknown until the map is fixed."""

    def __init__(self) -> None:
        self.shipped: Counter[int] = Counter()
        self.is_map_fixed = False

    def ship(self, order: Any) -> None:
        number = order.payload["order"]
        if number == WRONG and not self.is_map_fixed:
            raise ValueError(REASON)
        self.shipped[number] += 1


async def run(store: Store, journal: Journal, prefix: str) -> WorkResult:
    """Registers a reaction, places orders, handles them, and replays the dead one."""
    shop, reaction = _Shop(), _reaction(f"{prefix}demo.ship", f"{prefix}shop")
    config = WorkerConfig(handlers={reaction.reaction_id: handler(shop.ship)}, reactions=(reaction,))
    dispatcher = Dispatcher(store, config, journal)
    until = partial(_until, dispatcher, partial(store.tasks.listed, reaction_id=reaction.reaction_id))
    await dispatcher.register()
    await _order(journal, f"{prefix}shop")
    wanted = [number for number, amount in enumerate(AMOUNTS, 1) if amount >= MIN_AMOUNT or not reaction.predicate_cel]

    first = await until(lambda tasks: len(tasks) == len(wanted) and all(map(_is_over, tasks)))
    dead = [task for task in first if task.status is TaskStatus.DLQ]
    shop.is_map_fixed = True
    replayed = await store.tasks.replay([TaskId(task.task_id) for task in dead])
    last = await until(lambda tasks: all(task.status is TaskStatus.DONE for task in tasks))

    checks = (_fired(wanted, shop), _died(dead), _again(last, replayed))
    lines = (("reaction", f"{reaction.reaction_id}: {reaction.subject_pattern} {reaction.predicate_cel}".strip()),)
    return WorkResult(lines, checks, reaction.reaction_id, dead[0].task_id if dead else "")


def write(work: WorkResult) -> None:
    output.write()
    output.write(output.paint("A reaction ships orders; one of them dies, is fixed and replayed:", "bold"))
    output.table((output.paint(name, "bold"), text) for name, text in work.lines)


def _reaction(reaction_id: str, run_id: str) -> Reaction:
    return Reaction(
        reaction_id=reaction_id,
        name="ship what was ordered",
        subject_pattern=f"/orders/{run_id}/*",
        predicate_cel=PREDICATE if find_spec("cel_expr_python") else "",
        max_concurrency=4,
        retry_max=1,
        retry_backoff_ms=1,
    )


async def _order(journal: Journal, run_id: str) -> None:
    orders = [
        Event(
            run_id=run_id,
            type="order.placed",
            subject=f"/orders/{run_id}/{number}",
            payload={"order": number, "amount": amount},
        )
        for number, amount in enumerate(AMOUNTS, 1)
    ]
    await journal.open_run(run_id, RunMeta(label="a little shop"))
    await journal.append(orders)
    await journal.close_run(run_id)


async def _until(
    dispatcher: Dispatcher,
    listed: Callable[[], Awaitable[Sequence[Task]]],
    is_done: Callable[[Sequence[Task]], bool],
) -> Sequence[Task]:
    """Works until the tasks have this status; a server may match the same journal meanwhile."""
    tasks = await listed()
    with anyio.move_on_after(DEADLINE_S):
        while not is_done(tasks):
            await dispatcher.run_once()
            tasks = await listed()
    return tasks


def _is_over(task: Task) -> bool:
    return task.status in (TaskStatus.DONE, TaskStatus.DLQ)


def _fired(wanted: Sequence[int], shop: _Shop) -> Check:
    finding = f"{len(wanted)} of {len(AMOUNTS)} orders matched, {sum(shop.shipped.values())} shipped, once each"
    return Check("reaction", shop.shipped == Counter(wanted), finding)


def _died(dead: Sequence[Task]) -> Check:
    found = [(task.attempts, REASON in task.last_error) for task in dead]
    what = f"order {WRONG} after {dead[0].attempts} attempts: {dead[0].last_error}" if dead else "nothing died"
    return Check("dead letter", found == [(2, True)], what)


def _again(tasks: Sequence[Task], replayed: Sequence[str]) -> Check:
    names = {task.status.name.lower() for task in tasks}
    is_kept = len(replayed) == 1 and names == {"done"}
    return Check("replay", is_kept, f"{len(replayed)} of the dead replayed; now all are {' or '.join(sorted(names))}")
