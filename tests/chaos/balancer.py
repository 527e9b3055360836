"""A small TCP balancer before two servers, which can cut and stall all its connections."""

import anyio

from tests.servers.relay import End, Relay, closed, dial

PIECE = 65_536


class Balancer(Relay):
    """Gives each connection to the next server that accepts it."""

    def __init__(self, *ports: int) -> None:
        super().__init__("127.0.0.1", ports[0])
        self._ports = ports
        self._next = 0
        self._flow = anyio.Event()
        self._flow.set()

    @property
    def port(self) -> int:
        return self._port

    def stall(self) -> None:
        """From now on nothing moves, and no connection ends."""
        if self._flow.is_set():
            self._flow = anyio.Event()

    def flow(self) -> None:
        self._flow.set()

    async def _connect(self, client: End) -> None:
        await self._flow.wait()
        for _ in self._ports:
            self._next += 1
            try:
                server = await dial(self._host, self._ports[self._next % len(self._ports)])
            except OSError:
                continue
            with closed(server):
                return await self._carry(client, server)
        raise ConnectionRefusedError

    async def _carry(self, client: End, server: End) -> None:
        async with anyio.create_task_group() as ways:
            for source, target in ((client, server), (server, client)):
                ways.start_soon(self._copy, source, target, ways.cancel_scope)

    async def _copy(self, source: End, target: End, ways: anyio.CancelScope) -> None:
        while piece := await source.reader.read(PIECE):
            await self._flow.wait()
            target.writer.write(piece)
            await target.writer.drain()
        ways.cancel()
