import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import from_json
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from tape import Event, open_journal
from tape.lake import open_spark

STORE = "sqlite:///shop.db"
ORDERS = [("ada", 30), ("bo", 12), ("ada", 7), ("cy", 5), ("ada", 1), ("bo", 8)]


def add_up(key: tuple[str], parts: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Emits what a customer has spent so far; Spark keeps the sum between batches."""
    spent = (state.get[0] if state.exists else 0) + sum(int(part["amount"].sum()) for part in parts)
    state.update((spent,))
    payload = json.dumps({"customer": key[0], "spent": spent})
    yield pd.DataFrame({"run_id": ["totals"], "subject": [f"/shop/total/{key[0]}"], "payload_json": [payload]})


def totals(entries: DataFrame) -> DataFrame:
    order = from_json("payload_json", "customer STRING, amount BIGINT").alias("order")
    orders = entries.where("subject LIKE '/shop/order/%'").select(order).select("order.*")
    columns = "run_id STRING, subject STRING, payload_json STRING"
    by_customer = orders.groupBy("customer")
    return by_customer.applyInPandasWithState(add_up, columns, "spent BIGINT", "append", GroupStateTimeout.NoTimeout)


def keep_totals(spark: SparkSession) -> None:
    """Reads new entries, four per batch, and appends the totals that changed to the journal."""
    entries = spark.readStream.format("tape").options(store=STORE, maxRowsPerTrigger=4).load()
    sink = totals(entries).writeStream.format("tape").options(store=STORE, sinkId="totals")
    checkpoint = Path("checkpoint").absolute().as_uri()
    sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


async def place(orders: list[tuple[str, int]]) -> None:
    async with open_journal(STORE) as journal:
        for customer, amount in orders:
            order = {"customer": customer, "amount": amount}
            await journal.append(Event(run_id="shop", payload=order, subject=f"/shop/order/{customer}"), open=True)


async def show() -> None:
    async with open_journal(STORE) as journal:
        async for entry in journal.stream(subject="/shop/total/*", follow=False):
            print(entry.subject, entry.payload)


if __name__ == "__main__":
    asyncio.run(place(ORDERS[:4]))
    with open_spark({"spark.sql.shuffle.partitions": "1"}) as spark:
        keep_totals(spark)
        asyncio.run(place(ORDERS[4:]))
        keep_totals(spark)  # continues at its checkpoint, with the sums it had
    asyncio.run(show())
