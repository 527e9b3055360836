"""The journal as a Spark sink: `df.writeStream.format("tape")`, and `df.write.format("tape")` for a few rows.

Options: `store` (see `store_option`) and `sinkId`, the name under which batches are counted. Tasks send their rows to
the driver in their commit messages. The driver appends a batch in transactions of up to 20,000 rows, with idempotency
keys that begin with `sink:<id>:<batch>`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import anyio
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tape.core.errors import UsageError
from tape.lake.sink_batch import SinkBatch, append_batch, check_columns, events_of
from tape.lake.store_option import resolve
from tape.lake.stores import open_durable_store
from tape.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class TaskRows(WriterCommitMessage):
    """The rows of one task, as an Arrow stream."""

    stream: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class JournalSink:
    """The store and the name of a sink; the URL may hold a password and is in no repr."""

    url: str = field(repr=False)
    sink_id: str

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool) -> JournalSink:
        if overwrite:
            raise UsageError("a journal is only ever appended to; use mode('append')")
        check_columns(schema.fieldNames())
        if not options.get("sinkId"):
            raise UsageError("the option sinkId is missing: it names the writer, so that a batch is appended once")
        sink = cls(resolve(options.get("store") or None, os.environ), options["sinkId"])
        SinkBatch(sink_id=sink.sink_id, number=0, events=())
        return sink

    def collect(self, batches: Iterator[pa.RecordBatch]) -> TaskRows:
        import pyarrow as pa

        target = pa.BufferOutputStream()
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_stream(target, batch.schema)
            writer.write_batch(batch)
        if writer is not None:
            writer.close()
        return TaskRows(target.getvalue().to_pybytes())

    def append(self, messages: Sequence[WriterCommitMessage | None], number: int) -> None:
        """Appends the rows of all tasks, ordered by partition."""
        rows = (row for message in messages if isinstance(message, TaskRows) for row in _rows(message.stream))
        anyio.run(self._append, SinkBatch(sink_id=self.sink_id, number=number, events=events_of(rows)))

    async def _append(self, batch: SinkBatch) -> None:
        async with open_durable_store(self.url, Settings.read(os.environ)) as store:
            await append_batch(store, batch)


class _SinkWriter:
    """What both writers share: tasks collect rows, and nothing is written before the commit."""

    def __init__(self, sink: JournalSink) -> None:
        self._sink = sink

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType, overwrite: bool) -> Self:
        return cls(JournalSink.of(options, schema, overwrite))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._sink.collect(iterator)

    def abort(self, *_: object) -> None:
        return


class JournalStreamWriter(_SinkWriter, DataSourceStreamArrowWriter):
    """Writes a streaming query into the journal."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self._sink.append(messages, batchId)


class JournalWriter(_SinkWriter, DataSourceArrowWriter):
    """Writes a frame into the journal as the only batch of its sink, so that writing it again appends nothing."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._sink.append(messages, 0)


def _rows(stream: bytes) -> Iterator[dict[str, Any]]:
    import pyarrow as pa

    if stream:
        with pa.ipc.open_stream(stream) as reader:
            for batch in reader:
                yield from batch.to_pylist()
