"""librdkafka's mock cluster in a process of its own; while a file says so its brokers are down, with what they have."""

import ctypes
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import cimpl

BROKERS = 3
PRODUCER = 0
PAUSE_S = 0.01


class Cluster:
    """The functions of the library that its Python package has no names for."""

    def __init__(self) -> None:
        library = self._library = ctypes.CDLL(cimpl.__file__)  # which brings the library along
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(library, name).restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        handle = library.rd_kafka_new(PRODUCER, _pointer(library.rd_kafka_conf_new()), None, ctypes.c_size_t(0))
        self._cluster = _pointer(library.rd_kafka_mock_cluster_new(_pointer(handle), BROKERS))

    @property
    def servers(self) -> str:
        return str(self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode())

    def go(self, way: str) -> None:
        """Down, which cuts all connections and refuses new ones, or up again."""
        for broker in range(1, BROKERS + 1):
            getattr(self._library, f"rd_kafka_mock_broker_set_{way}")(self._cluster, ctypes.c_int32(broker))


def _pointer(address: Any) -> ctypes.c_void_p:
    assert address, "librdkafka has made nothing"
    return ctypes.c_void_p(address)


def main() -> None:
    folder, cluster = Path(sys.argv[2]), Cluster()
    write(folder / "servers", cluster.servers)
    while True:
        wait_for(folder / "down", True)
        cluster.go("down")
        write(folder / "is_down", "")
        wait_for(folder / "down", False)
        cluster.go("up")
        (folder / "is_down").unlink()


def write(place: Path, text: str) -> None:
    """Whoever sees the file sees it whole."""
    place.with_suffix(".new").write_text(text)
    place.with_suffix(".new").rename(place)


def wait_for(place: Path, is_there: bool) -> None:
    while place.exists() != is_there:
        time.sleep(PAUSE_S)
