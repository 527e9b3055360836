"""Wakes other processes: after a commit, a datagram goes to each socket in a folder beside the file."""

import asyncio
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

from tape.core.ids import GlobalSeq

AT_ONCE: Final = 64  # datagrams
SETTLED_NS: Final = 100_000_000  # a folder's time is coarse: younger than this, it may change again unseen


class NoWake:
    """For a database in memory, which one process has."""

    async def notify(self, head: GlobalSeq) -> None:
        return

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        await anyio.sleep_forever()

    def close(self) -> None:
        return


class DatagramWake:
    """A hint between processes: sent without waiting, errors ignored, sockets of dead processes removed.

    It listens from the first wait on, so a process that only writes leaves no socket behind.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._handle: int | None = None
        self._peers: tuple[int, list[str]] = (-1, [])
        self._arrived = asyncio.Event()
        self._is_listening = False

    async def notify(self, head: GlobalSeq) -> None:
        for peer in self._others():
            try:
                self._socket.sendto(b"%d" % head, self._address(peer))
            except ConnectionRefusedError:
                self._remove(peer)
            except FileNotFoundError:
                self._forget_folder()  # the folder was replaced, or the socket was just removed
            except OSError:
                continue  # a full queue wakes its process anyway

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        self._listen()
        await self._arrived.wait()
        self._arrived.clear()

    def close(self) -> None:
        if self._is_listening:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._remove(self._name)
        self._socket.close()
        self._forget_folder()

    def _listen(self) -> None:
        if self._is_listening:
            return
        self._is_listening = True
        with suppress(OSError):  # without a socket the poll still finds everything
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._socket.bind(self._address(self._name))
            asyncio.get_running_loop().add_reader(self._socket, self._on_datagram)

    def _on_datagram(self) -> None:
        """Receives a bounded number of datagrams, so that a flood does not block the loop."""
        self._arrived.set()
        with suppress(BlockingIOError):
            for _ in range(AT_ONCE):
                self._socket.recv(64)

    def _others(self) -> list[str]:
        """The names of the sockets, listed again only when the folder has changed."""
        try:
            changed = self._folder.stat().st_mtime_ns
            if changed != self._peers[0]:
                is_settled = time.time_ns() - changed > SETTLED_NS
                names = [peer.name for peer in self._folder.iterdir() if peer.name != self._name]
                self._peers = (changed if is_settled else -1, names)
        except OSError:
            return []  # no process has listened yet
        return self._peers[1]

    def _address(self, name: str) -> str:
        """A path that fits into a socket address, however long the path of the folder is."""
        if not Path("/proc/self/fd").is_dir():
            return str(self._folder / name)
        if self._handle is None:
            self._handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._handle}/{name}"

    def _forget_folder(self) -> None:
        """Opens the folder anew the next time."""
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._peers = None, (-1, [])

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            (self._folder / name).unlink()
