"""What a soak has done so far: kept in a file, so that one that was interrupted goes on with its next suite."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.soak.outcome import Outcome
from tests.soak.suites import Suite


class State:
    """The outcomes of suites, each stored as soon as there is one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._outcomes = msgspec.json.decode(path.read_bytes(), type=dict[str, Outcome]) if path.exists() else {}

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        return self._outcomes

    def store(self, name: str, outcome: Outcome) -> None:
        self._outcomes[name] = outcome
        whole = self._path.with_suffix(".new")
        whole.write_bytes(msgspec.json.format(msgspec.json.encode(self._outcomes)))
        whole.replace(self._path)

    def current(self, suite: Suite, sources: str) -> Outcome | None:
        """The outcome of a suite with these sources, this scale and this box."""
        found = self._outcomes.get(suite.name)
        wanted = sources, suite.scale, suite.box_s
        return found if found and (found.sources, found.scale, found.box_s) == wanted else None


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Refuses a second soak in the same folder: both would take the other's time."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"a soak is running here already: {path} is locked") from None
        yield
