"""The file in which a relay of the journal keeps its place: `{"last_global_seq": 8421, "epoch": 1786000000000}`."""

import json
import os
from contextlib import aclosing
from pathlib import Path

from tape.bus.journal import Journal
from tape.core.errors import UsageError, shown
from tape.telemetry import log

NAME = "last_global_seq"
EPOCH = "epoch"
OLD_NAME = "from_ts_ms"


class CursorFile:
    """A place on disk, replaced whole: after a crash it is the old one or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self, journal: Journal) -> tuple[int, int]:
        """The last position that was relayed, 0 without a file, and its epoch; an old cursor is converted."""
        said = self._said()
        if isinstance(said.get(OLD_NAME), int) and NAME not in said:
            place = await converted(journal, said[OLD_NAME])
            log.warning("relay.cursor_converted", from_ts_ms=said[OLD_NAME], last_global_seq=place)
            self.write(place, journal.epoch)
            return place, journal.epoch
        place, epoch = said.get(NAME, 0), said.get(EPOCH, journal.epoch)
        if any(type(number) is not int or number < 0 for number in (place, epoch)):
            raise UsageError(f"{self._path} holds no cursor but {shown(said)}")
        return place, epoch

    def write(self, last_global_seq: int, epoch: int) -> None:
        """When it returns, the place is on disk."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({NAME: last_global_seq, EPOCH: epoch}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def _said(self) -> dict[str, int]:
        try:
            said = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise UsageError(f"{self._path} holds no cursor: {error}") from error
        if not isinstance(said, dict):
            raise UsageError(f"{self._path} holds no cursor but {shown(said)}")
        return said


async def converted(journal: Journal, from_ts_ms: int) -> int:
    """The place of a cursor that was a time: before everything of that millisecond, so that nothing is passed over."""
    place = 0
    async with aclosing(journal.stream(follow=False)) as entries:
        async for entry in entries:
            if entry.ts_ms >= from_ts_ms:
                break
            place = entry.global_seq
    return place
