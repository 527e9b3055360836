"""A proxy for gRPC that can reset streams, as one with an idle timeout does, and answer with an error page.

async with Http2Proxy(port).open() as between:
    ...  # open a stream at between.url
    between.reset_streams(INTERNAL_ERROR)
    between.answers = 413  # from now on, to every call
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from tests.server.http2 import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    RST_STREAM,
    Frame,
    field as header,
    frame,
)
from tests.servers.relay import End, Relay

PAGE = b"<html>a page for people</html>"

Pass: TypeAlias = Callable[[Frame], None]


@dataclass(slots=True)
class Passage:
    """One connection, and the streams that its server has begun to answer."""

    client: End
    server: End
    streams: set[int] = field(default_factory=set)


class Http2Proxy(Relay):
    """Passes frames on whole, so that it can write its own between them."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port)
        self._passages: list[Passage] = []
        self.answers: int | None = None

    @property
    def url(self) -> str:
        return f"tape://127.0.0.1:{self._port}"

    @property
    def open_streams(self) -> int:
        return sum(len(each.streams) for each in self._passages)

    def reset_streams(self, code: int) -> None:
        """Ends what is streamed now with an error code, and cancels it at the server."""
        for passage in self._passages:
            for stream in passage.streams:
                passage.client.writer.write(frame(RST_STREAM, 0, stream, code.to_bytes(4)))
                passage.server.writer.write(frame(RST_STREAM, 0, stream, CANCEL.to_bytes(4)))
            passage.streams.clear()

    async def _carry(self, client: End, server: End) -> None:
        passage = Passage(client, server)
        self._passages.append(passage)
        try:
            server.writer.write(await client.reader.readexactly(len(PREFACE)))
            async with anyio.create_task_group() as ways:
                ways.start_soon(_each_frame, client.reader, lambda asked: self._ask(passage, asked))
                ways.start_soon(_each_frame, server.reader, lambda answer: self._answer(passage, answer))
        finally:
            self._passages.remove(passage)

    def _ask(self, passage: Passage, asked: Frame) -> None:
        if self.answers is None or asked.kind not in (HEADERS, DATA):
            passage.server.writer.write(frame(*asked[:3], asked.body))
        elif asked.kind == HEADERS:
            fields = header(":status", str(self.answers)) + header("content-type", "text/html")
            passage.client.writer.write(frame(HEADERS, END_HEADERS, asked.stream, fields))
            passage.client.writer.write(frame(DATA, END_STREAM, asked.stream, PAGE))

    def _answer(self, passage: Passage, answer: Frame) -> None:
        passage.client.writer.write(frame(*answer[:3], answer.body))
        if answer.kind == RST_STREAM or (answer.flags & END_STREAM and answer.kind in (HEADERS, DATA)):
            passage.streams.discard(answer.stream)
        elif answer.kind == HEADERS:
            passage.streams.add(answer.stream)


async def _each_frame(source: asyncio.StreamReader, pass_on: Pass) -> None:
    while True:
        head = await source.readexactly(9)
        body = await source.readexactly(int.from_bytes(head[:3]))
        pass_on(Frame(head[3], head[4], int.from_bytes(head[5:]), body))
