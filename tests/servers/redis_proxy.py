"""A way to Redis on which things get lost."""

import asyncio

from tests.servers.proxy import Proxy


class RedisProxy(Proxy):
    """Forwards pieces of messages, because nobody here reads them."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}{self._target.path}"

    async def _answer(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while answer := await server.read(65_536):
            if self.loses_an_answer:
                self.loses_an_answer = False
                return
            to_client.write(answer)
