"""First attempts as columns of tape_finish."""

import pytest

from tape.core.task import TaskClaim, TaskId, task_id
from tape.store.postgres.first_attempts import FirstAttempts, first_attempts


def claim(reaction_id: str, place: int, owner: str = "me", attempt: int = 1) -> TaskClaim:
    return TaskClaim(task_id(reaction_id, place), owner, attempt)


def test_positions_rise_and_come_once_for_each_reaction() -> None:
    claims = [claim("one", 7), claim("two", 5), claim("one", 3), claim("one", 7)]

    columns = first_attempts(claims)

    prefixes = [claims[0].task_id.partition(".")[0], claims[1].task_id.partition(".")[0]]
    assert columns == FirstAttempts("me", prefixes, [2, 1], [3, 7, 5])


@pytest.mark.parametrize(
    "odd",
    [
        claim("one", 7, owner="you"),
        claim("one", 7, attempt=0),
        claim("one", 7, attempt=2),
        TaskClaim(TaskId("task-1"), "me", 1),
        TaskClaim(TaskId("prefix.00000000000000x"), "me", 1),
        TaskClaim(TaskId("prefix.00000000000000²"), "me", 1),
    ],
)
def test_other_claims_are_settled_as_rows(odd: TaskClaim) -> None:
    assert first_attempts([claim("one", 1), odd]) is None
