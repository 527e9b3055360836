"""The client of a Tape server's HTTP API."""

from typing import Final, Self
from urllib.parse import urlsplit

import httpx

from tape.core.errors import UsageError, quoted
from tape.sdk.sse import EventStream
from tape.sdk.subscription import Slow, Subscription

CONNECT_S: Final = 10.0
SILENCE_S: Final = 45.0  # a server sends at least a comment every fifteen seconds


class AsyncClient:
    """A client of the HTTP API at a URL; `tape.sdk.blocking.Client` is the same without async."""

    def __init__(self, url: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UsageError(f"a server is named by an http:// or https:// URL, not {quoted(url)}")
        self._http = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(CONNECT_S, read=SILENCE_S),
            limits=httpx.Limits(max_connections=None),  # each stream holds one; a limit could deadlock
            trust_env=False,  # servers are on this machine, so proxy settings do not apply
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    def events(
        self,
        *,
        run_id: str | None = None,
        from_seq: int | None = None,
        subject: str | None = None,
        where: str | None = None,
        from_global_seq: int | None = None,
        max_queued: int | None = None,
        slow: Slow | None = None,
    ) -> EventStream:
        """The events of a run, or of the journal across runs; each id once, in order, over any number of connections.

        Without a start position a run is read from its beginning, and the journal from now on.
        """
        subscription = Subscription(
            run_id=run_id,
            from_seq=from_seq,
            subject=subject,
            where=where,
            from_global_seq=from_global_seq,
            max_queued=max_queued,
            slow=slow,
        )
        return EventStream(self._http, subscription)
