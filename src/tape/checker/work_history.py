"""The part of a history that is about reactions and tasks."""

from typing import Literal, NamedTuple

from tape.checker.lines import (
    ClaimLine,
    HandleLine,
    MalformedHistory,
    ReadLine,
    RegisterLine,
    SettleLine,
    StoppedLine,
    TaskLine,
)


class Try(NamedTuple):
    """An attempt of a task, and the line that proves it."""

    attempt: int
    client: str
    line: int


class AcceptedSettle(NamedTuple):
    """A settle that was accepted, with the newest attempt that anybody had before it was sent."""

    task_id: str
    attempt: int
    newest: Try | None
    line: int


class RunningChange(NamedTuple):
    """A step by which the number of running handlers changes; `task_id` is empty when a client was stopped."""

    what: Literal["begin", "end", "stop"]
    client: str
    task_id: str
    attempt: int
    reaction_id: str
    line: int


class WorkHistory:
    """Registrations, attempts, settles, and the final list of tasks."""

    def __init__(self) -> None:
        self.reactions: dict[str, tuple[int, RegisterLine]] = {}
        self.limits: list[tuple[int, RegisterLine]] = []
        self.matches: dict[tuple[str, int], dict[str, int]] = {}
        """For each reaction and position: its tasks, with the first line that has them."""
        self.tries: dict[str, list[Try]] = {}
        self.ends: dict[tuple[str, int], tuple[int, HandleLine]] = {}
        self.changes: list[RunningChange] = []
        self.settled: list[AcceptedSettle] = []
        self.rows: dict[str, tuple[int, TaskLine]] | None = None
        """The rows of the newest final list, if there is one."""
        self.rows_line = 0
        self._lists: dict[tuple[str, int], dict[str, tuple[int, TaskLine]]] = {}
        self._settling: dict[tuple[str, int], Try | None] = {}

    def add(self, number: int, line: object) -> bool:
        """Takes a line if it is about work."""
        match line:
            case HandleLine():
                self._handle(number, line)
            case ClaimLine(step="ok"):
                self._match(line.reaction_id, line.global_seq, line.task_id, number)
                self._try(number, line)
            case SettleLine():
                self._settle(number, line)
            case TaskLine() | ReadLine(of="tasks"):
                self._list(number, line)
            case RegisterLine(step="ok"):
                self.reactions.setdefault(line.reaction_id, (number, line))
                self.limits.append((number, line))
            case StoppedLine():
                self.changes.append(RunningChange("stop", line.client, "", 0, "", number))
            case _:
                return False
        return True

    def newest(self, task_id: str) -> Try | None:
        """The highest attempt that anybody has had so far."""
        return max(self.tries.get(task_id, ()), default=None)

    def _handle(self, number: int, line: HandleLine) -> None:
        if line.step == "invoke":
            self._match(line.reaction_id, line.global_seq, line.task_id, number)
            self._try(number, line)
            change = RunningChange("begin", line.client, line.task_id, line.attempt, line.reaction_id, number)
        else:
            if Try(line.attempt, line.client, 0)[:2] not in (each[:2] for each in self.tries.get(line.task_id, ())):
                raise MalformedHistory(number, f"the attempt {line.attempt} of task {line.task_id} never began")
            self.ends[line.task_id, line.attempt] = (number, line)
            change = RunningChange("end", line.client, line.task_id, line.attempt, line.reaction_id, number)
        self.changes.append(change)

    def _settle(self, number: int, line: SettleLine) -> None:
        name = line.client, line.number
        if line.step == "invoke":
            self._settling[name] = self.newest(line.task_id)
        elif line.step == "ok":
            self.settled.append(AcceptedSettle(line.task_id, line.attempt, self._settling.get(name), number))

    def _list(self, number: int, line: TaskLine | ReadLine) -> None:
        name = line.client, line.number
        if isinstance(line, ReadLine) and line.step == "invoke":
            self._lists[name] = {}
        elif name not in self._lists:
            raise MalformedHistory(number, f"the read {line.number} of {line.client} was never invoked")
        elif isinstance(line, TaskLine):
            self._lists[name][line.task_id] = (number, line)
            self._match(line.reaction_id, line.global_seq, line.task_id, number)
        elif line.step == "ok" and line.is_final:
            self.rows, self.rows_line = self._lists[name], number

    def _match(self, reaction_id: str, global_seq: int, task_id: str, number: int) -> None:
        if reaction_id and global_seq:
            self.matches.setdefault((reaction_id, global_seq), {}).setdefault(task_id, number)

    def _try(self, number: int, line: ClaimLine | HandleLine) -> None:
        self.tries.setdefault(line.task_id, []).append(Try(line.attempt, line.client, number))
