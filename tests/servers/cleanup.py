"""Outlives the tests that started servers: when they end, however they do, it ends the servers and deletes the folder.

Reads the servers' process ids from its standard input, which the system closes when the tests are gone. A parent-death
signal would not do: it comes when the *thread* ends that started the server, and tests restart servers from threads.
"""

import shutil
import sys
from contextlib import suppress

import psutil

from tests.servers import process_tree


def main(folder: str) -> None:
    servers = []
    for line in sys.stdin:
        with suppress(psutil.NoSuchProcess):
            servers.append(psutil.Process(int(line)))  # remembers when it began, in case the id is used again
    for server in servers:
        process_tree.end(server)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
