"""Whom a server runs as: PostgreSQL refuses root, so root lends it the account of nobody."""

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.servers.errors import ServerMissing

LONGEST_FOLDER = 60  # a unix socket's path may have 103 bytes on some systems, and the socket needs its share
NO_ACCOUNT = (
    "PostgreSQL refuses to run as root, and root may not become 'nobody' here; "
    "run the tests as an ordinary user, or name a server in TAPE_TEST_POSTGRES_URL"
)

BECOME = """
import os, sys, warnings  # before the account that may not read it
user, group, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(group))
os.setuid(int(user))
os.execvp(command[0], command)
"""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who runs programs; without ids it is ourselves."""

    user: int | None = None
    group: int | None = None

    @classmethod
    def for_postgres(cls) -> "Account":
        if os.geteuid() != 0:
            return cls()
        try:
            nobody = pwd.getpwnam("nobody")
        except KeyError:
            raise ServerMissing(NO_ACCOUNT) from None
        account = cls(nobody.pw_uid, nobody.pw_gid)
        if not account.can("true"):  # in a user namespace with one user, for example
            raise ServerMissing(NO_ACCOUNT)
        return account

    def spawn(self, command: Sequence[str | Path], folder: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
        """A process in a session of its own, so that a terminal's Ctrl-C reaches the tests only."""
        return subprocess.Popen(
            self._as_account(command), cwd=folder, env=environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip

    def can(self, *command: str | Path) -> bool:
        """Whether a command succeeds; one that may not even be reached does not."""
        try:
            done = subprocess.run(self._as_account(command), cwd="/", capture_output=True, check=False)
        except OSError:
            return False
        return done.returncode == 0

    def make_folder(self, prefix: str) -> Path:
        """A private folder with a short path, at a place that the account can reach."""
        place_of_tests = os.environ.get("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        for place in (place_of_tests, tempfile.gettempdir(), "/tmp", "/var/tmp"):
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place)).resolve()
            self.give(folder)
            if len(str(folder)) <= LONGEST_FOLDER and self.can("ls", folder):
                return folder
            folder.rmdir()
        raise ServerMissing(f"user {self.user} can enter neither {tempfile.gettempdir()} nor /tmp nor /var/tmp")

    def give(self, path: Path) -> None:
        """Makes the account own a file, or a folder with everything in it."""
        if self.user is not None and self.group is not None:
            for owned in (path, *path.rglob("*")):
                os.chown(owned, self.user, self.group, follow_symlinks=False)

    def _as_account(self, command: Sequence[str | Path]) -> Sequence[str | Path]:
        """The program becomes another user itself: asked for that, `subprocess` forks, and gRPC aborts the fork."""
        if self.user is None:
            return [*command]
        return [sys.executable, "-I", "-S", "-c", BECOME, str(self.user), str(self.group), *command]


def environment() -> dict[str, str]:
    """Ours, without what would change a server or the language of its log."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}
