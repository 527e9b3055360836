"""The file with a journal forwarder's position: `{"last_global_seq": 8421, "epoch": 1786000000000}`."""

import json
import os
from contextlib import aclosing
from pathlib import Path

from tape.bus.journal import Journal
from tape.core.errors import UsageError, quoted
from tape.telemetry import log

NAME = "last_global_seq"
EPOCH = "epoch"
OLD_NAME = "from_ts_ms"


class CursorFile:
    """A position on disk, replaced atomically: after a crash it is the old one or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self, journal: Journal) -> tuple[int, int]:
        """The last forwarded position, 0 without a file, and its epoch; a timestamp cursor is converted."""
        fields = self._fields()
        if isinstance(fields.get(OLD_NAME), int) and NAME not in fields:
            position = await position_before(journal, fields[OLD_NAME])
            log.warning("relay.cursor_converted", from_ts_ms=fields[OLD_NAME], last_global_seq=position)
            self.write(position, journal.epoch)
            return position, journal.epoch
        position, epoch = fields.get(NAME, 0), fields.get(EPOCH, journal.epoch)
        if any(type(number) is not int or number < 0 for number in (position, epoch)):
            raise UsageError(f"{self._path} holds no cursor but {quoted(fields)}")
        return position, epoch

    def write(self, last_global_seq: int, epoch: int) -> None:
        """When it returns, the position is on disk."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f"{self._path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({NAME: last_global_seq, EPOCH: epoch}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)

    def _fields(self) -> dict[str, int]:
        try:
            fields = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise UsageError(f"{self._path} holds no cursor: {error}") from error
        if not isinstance(fields, dict):
            raise UsageError(f"{self._path} holds no cursor but {quoted(fields)}")
        return fields


async def position_before(journal: Journal, ts_ms: int) -> int:
    """The last position before a millisecond, so that every entry of that millisecond is forwarded."""
    position = 0
    async with aclosing(journal.stream(follow=False)) as entries:
        async for entry in entries:
            if entry.ts_ms >= ts_ms:
                break
            position = entry.global_seq
    return position
