"""A broker of taskiq, as the README of taskiq-redis writes it: RedisStreamBroker, which acknowledges.

`taskiq worker tests.bench.users.programs.taskiq_tasks:broker --workers 1`
"""

import os

from taskiq_redis import RedisStreamBroker

from tests.bench.users.handled import note

broker = RedisStreamBroker(url=os.environ["REDIS_STREAM_URL"])


@broker.task(task_name="handle")  # type: ignore[untyped-decorator]
async def handle(number: int) -> None:
    note(number)
