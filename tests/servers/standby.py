"""A standby of a private PostgreSQL, which receives what its primary writes until it is promoted."""

import time
from pathlib import Path

from tests.deadlines import DEADLINE_S
from tests.servers.databases import execute, fetch
from tests.servers.postgres import USER, PostgresServer

NAME = "standby"


class PostgresStandby(PostgresServer):
    """A copy of a running primary that follows it."""

    def __init__(self, primary: PostgresServer, disk: Path | None = None) -> None:
        super().__init__(disk=disk)
        self._primary = primary

    def promote(self) -> None:
        """Makes it a primary; returns when it can be written to."""
        execute(self._url, "SELECT pg_promote()")
        self._until("SELECT NOT pg_is_in_recovery()")

    def stop_receiving(self) -> None:
        """What the primary writes from now on never comes; it has replayed what was written before."""
        ((place,),) = fetch(self._primary.url("postgres"), "SELECT pg_current_wal_lsn()::text")
        self._until(f"SELECT pg_last_wal_replay_lsn() >= '{place}'")
        execute(self._url, "ALTER SYSTEM SET primary_conninfo = ''")
        execute(self._url, "SELECT pg_reload_conf()")
        self._until("SELECT count(*) = 0 FROM pg_stat_wal_receiver")

    def _create(self) -> None:
        self._programs = self._reachable(self._programs)
        source = f"host=127.0.0.1 port={self._primary.port} user={USER} application_name={NAME}"
        options = ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync"]
        self._run([self._programs / "pg_basebackup", f"--dbname={source}", f"--pgdata={self.data}", *options])

    def _until(self, question: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while fetch(self._url, question) != [(True,)]:
            assert time.monotonic() < deadline, f"never true: {question}"
            time.sleep(0.01)
