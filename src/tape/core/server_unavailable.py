"""A refusal for now by a server itself."""

from tape.core.errors import Unavailable


class ServerUnavailable(Unavailable):
    """The server itself cannot serve this now; unlike a store's error text, its reason is sent to the client."""

    @property
    def code(self) -> str:
        return "unavailable"
