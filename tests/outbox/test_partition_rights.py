"""A partitioned table keeps its owner, its grants and everything attached to it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import anyio
import asyncpg
import pytest

from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention
from tape.outbox.database import open_outbox
from tape.store.outbox.table import OutboxTable
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event

RIGHTS = """
SELECT 'table', '', a.grantor::regrole::text, a.grantee::regrole::text, a.privilege_type, a.is_grantable
FROM pg_class AS c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
WHERE c.oid = 'core.outbox'::regclass
UNION ALL
SELECT 'sequence', '', a.grantor::regrole::text, a.grantee::regrole::text, a.privilege_type, a.is_grantable
FROM pg_class AS c, aclexplode(coalesce(c.relacl, acldefault('s', c.relowner))) AS a
WHERE c.oid = pg_get_serial_sequence('core.outbox', 'position')::regclass
UNION ALL
SELECT 'column', t.attname, a.grantor::regrole::text, a.grantee::regrole::text, a.privilege_type, a.is_grantable
FROM pg_attribute AS t, aclexplode(t.attacl) AS a WHERE t.attrelid = 'core.outbox'::regclass
ORDER BY 1, 2, 3, 4, 5
"""
CARRIED = {
    "owner": "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'core.outbox'::regclass",
    "row security": "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = 'core.outbox'::regclass",
    "policies": """SELECT policyname::text, permissive, roles::text, cmd, qual, with_check FROM pg_policies
                   WHERE schemaname = 'core' AND tablename = 'outbox' ORDER BY 1""",
    "triggers": """SELECT tgname::text, pg_get_triggerdef(oid), tgenabled::text FROM pg_trigger
                   WHERE tgrelid = 'core.outbox'::regclass AND NOT tgisinternal ORDER BY 1""",
    "comments": """SELECT objsubid, description FROM pg_description
                   WHERE objoid = 'core.outbox'::regclass AND classoid = 'pg_class'::regclass ORDER BY 1""",
    "constraints": """SELECT conname::text, pg_get_constraintdef(oid) FROM pg_constraint
                      WHERE conrelid = 'core.outbox'::regclass AND contype IN ('c', 'f') ORDER BY 1""",
    "columns": """SELECT attname::text, atttypid, attnotnull, attidentity::text, attstorage::text
                  FROM pg_attribute WHERE attrelid = 'core.outbox'::regclass AND attnum > 0 ORDER BY attnum""",
    "index keys": """SELECT substring(pg_get_indexdef(indexrelid) FROM ' USING .*') FROM pg_index
                     WHERE indrelid = 'core.outbox'::regclass AND NOT indisunique ORDER BY 1""",
    "publications": """SELECT pubname::text, rowfilter FROM pg_publication_tables
                       WHERE schemaname = 'core' AND tablename = 'outbox' ORDER BY 1""",
}
FASTENED = """
CREATE TABLE workspaces (id uuid PRIMARY KEY);
ALTER TABLE core.outbox ADD CONSTRAINT known_workspace FOREIGN KEY (workspace_id) REFERENCES workspaces (id);
ALTER TABLE core.outbox ADD CONSTRAINT short_source CHECK (length(source) < 100);
ALTER TABLE core.outbox ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_source ON core.outbox AS RESTRICTIVE FOR SELECT TO {app} USING (source = current_user);
CREATE POLICY any_insert ON core.outbox FOR INSERT WITH CHECK (true);
CREATE FUNCTION stamped() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER user_stamp BEFORE INSERT ON core.outbox FOR EACH ROW WHEN (NEW.target IS NULL)
  EXECUTE FUNCTION stamped();
ALTER TABLE core.outbox DISABLE TRIGGER user_stamp;
COMMENT ON TABLE core.outbox IS 'what the shop publishes';
COMMENT ON COLUMN core.outbox.payload IS 'an object';
CREATE INDEX user_sources ON core.outbox (source) WHERE target IS NOT NULL;
ALTER TABLE core.outbox ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE PUBLICATION shop FOR TABLE core.outbox WHERE (source = 'shop')
  WITH (publish = 'insert', publish_via_partition_root);
GRANT SELECT, REFERENCES ON core.outbox TO {worker} WITH GRANT OPTION;
GRANT UPDATE (target), SELECT (id) ON core.outbox TO {app} WITH GRANT OPTION;
GRANT SELECT ON SEQUENCE core.outbox_position_seq TO {worker} WITH GRANT OPTION;
REVOKE TRUNCATE ON core.outbox FROM {owner};
GRANT SELECT (source) ON core.outbox TO PUBLIC;
SET ROLE {worker};
GRANT SELECT ON core.outbox TO {app};
GRANT SELECT ON SEQUENCE core.outbox_position_seq TO {app};
RESET ROLE;
ALTER DEFAULT PRIVILEGES IN SCHEMA core GRANT ALL ON TABLES TO {app};
ALTER DEFAULT PRIVILEGES IN SCHEMA core GRANT ALL ON SEQUENCES TO PUBLIC;
"""

COUNTED = """DO $$ BEGIN
CREATE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER counted AFTER INSERT ON core.outbox REFERENCING NEW TABLE AS new_rows FOR EACH ROW
  EXECUTE FUNCTION counted();
END $$"""


@dataclass(frozen=True, slots=True)
class Roles:
    """Roles that may do what they need and nothing more, each with a business of its own."""

    owner: str
    app: str
    worker: str
    url: str

    def business(self, role: str) -> BusinessDatabase:
        parts = urlsplit(self.url)
        return BusinessDatabase("postgres", parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl())

    def named(self, statements: str) -> str:
        return statements.format(owner=self.owner, app=self.app, worker=self.worker)


@pytest.fixture
async def roles(postgres: BusinessDatabase) -> AsyncIterator[Roles]:
    mark = uuid4().hex[:8]
    roles = Roles(f"owner_{mark}", f"app_{mark}", f"worker_{mark}", postgres.url)
    async with postgres.connected() as connection:
        await connection.execute(roles.named(GRANTED))
        yield roles
        for role in (roles.worker, roles.app, roles.owner):
            await connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


GRANTED = """
CREATE ROLE {owner} LOGIN; CREATE ROLE {app} LOGIN; CREATE ROLE {worker} LOGIN;
GRANT CREATE, USAGE ON SCHEMA core TO {owner};
ALTER TABLE core.outbox OWNER TO {owner};
GRANT USAGE ON SCHEMA core TO {app}, {worker};
GRANT INSERT ON core.outbox, orders TO {app};
GRANT SELECT, UPDATE, DELETE ON core.outbox TO {worker};
GRANT SELECT, INSERT, UPDATE, DELETE ON core.outbox_deliveries, core.event_handled, core.event_handlers TO {worker};
GRANT UPDATE ON core.outbox_fan_out_lock TO {worker};
"""


async def divided(business: BusinessDatabase) -> list[str]:
    async with open_outbox(business.url) as database:
        return await OutboxTable(database).divide()


async def test_a_role_that_may_only_insert_publishes_before_and_after(postgres: BusinessDatabase, roles: Roles) -> None:
    app = roles.business(roles.app)
    await app.publish(make_event(1))

    await divided(postgres)
    await app.publish(make_event(2))

    assert await postgres.states("position") == [(1,), (2,)]


async def test_a_role_that_only_works_delivers_and_retains_before_and_after(
    postgres: BusinessDatabase, roles: Roles
) -> None:
    worker, seen = roles.business(roles.worker), RecordingHandler()

    async with worker.listening({"test.seen": seen}, retention=OutboxRetention()):
        await postgres.publish(make_event(1))
        await postgres.wait_until("delivered", 1)
        await divided(postgres)
        await postgres.publish(make_event(2))
        await postgres.wait_until("delivered", 2)
    async with open_outbox(worker.url) as database:
        kept = await OutboxTable(database).retain(OutboxRetention())

    assert (seen.numbers, kept.deleted) == ([1, 2], 0)


async def test_a_worker_that_may_not_create_partitions_continues(
    postgres: BusinessDatabase, roles: Roles, caplog: pytest.LogCaptureFixture
) -> None:
    *_, last = await divided(postgres)
    await postgres.run(f"DROP TABLE core.{last}")

    async with open_outbox(roles.business(roles.worker).url) as database:
        await OutboxTable(database).retain(OutboxRetention())

    assert "outbox.months_missing" in caplog.messages


@pytest.mark.parametrize("by_owner", [True, False])
async def test_a_partitioned_table_keeps_everything_that_was_attached_to_it(
    postgres: BusinessDatabase, roles: Roles, by_owner: bool
) -> None:
    async with postgres.connected() as connection:
        await connection.execute(roles.named(FASTENED))
        if by_owner:
            await connection.execute(roles.named("ALTER PUBLICATION shop OWNER TO {owner}"))
            await connection.execute(
                roles.named("GRANT REFERENCES ON workspaces TO {owner}; GRANT {worker} TO {owner}")
            )
            await connection.execute(f"GRANT CREATE ON DATABASE {urlsplit(postgres.url).path[1:]} TO {roles.owner}")
        before = await carried(connection)

        await divided(roles.business(roles.owner) if by_owner else postgres)
        after = await carried(connection)

    assert after == before


async def carried(connection: asyncpg.Connection) -> dict[str, Any]:
    asked = {**CARRIED, "rights": RIGHTS}
    await connection.execute("SET search_path = pg_catalog")
    return {name: [tuple(row) for row in await connection.fetch(query)] for name, query in asked.items()}


async def test_a_partition_is_accessible_only_with_grants_on_the_table(
    postgres: BusinessDatabase, roles: Roles
) -> None:
    async with postgres.connected() as connection:
        await connection.execute(roles.named("ALTER DEFAULT PRIVILEGES IN SCHEMA core GRANT SELECT ON TABLES TO {app}"))
        made = await divided(postgres)
        may = [
            await connection.fetchval(f"SELECT has_table_privilege('{roles.app}', 'core.{name}', 'SELECT')")
            for name in made
        ]

    assert not any(may)


async def test_positions_go_on_where_they_were_although_the_newest_row_is_gone(postgres: BusinessDatabase) -> None:
    await postgres.publish(make_event(1), make_event(2))
    await postgres.run("DELETE FROM core.outbox WHERE position = 2")

    await divided(postgres)
    await postgres.publish(make_event(3))

    assert await postgres.states("position") == [(1,), (3,)]


async def test_a_table_whose_updates_are_published_can_be_updated_in_every_partition(
    postgres: BusinessDatabase,
) -> None:
    await postgres.run("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root)")
    seen = RecordingHandler()

    await divided(postgres)
    async with postgres.listening({"test.seen": seen}):
        await postgres.publish(make_event(1))
        with anyio.fail_after(DEADLINE_S):
            await postgres.wait_until("delivered", 1)

    assert seen.numbers == [1]


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE VIEW waiting AS SELECT id FROM core.outbox", "waiting"),
        ("CREATE MATERIALIZED VIEW waiting AS SELECT id FROM core.outbox", "waiting"),
        ("CREATE TABLE receipts (event uuid REFERENCES core.outbox (id))", "receipts_event_fkey"),
        ("CREATE UNIQUE INDEX one_key ON core.outbox (idempotency_key)", "one_key"),
        ("CREATE RULE loud AS ON DELETE TO core.outbox DO ALSO NOTIFY gone", "loud"),
        ("CREATE PUBLICATION plain FOR TABLE core.outbox", "plain"),
        ("CREATE FUNCTION total() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM core.outbox)", "total"),
        ("CREATE FUNCTION clear() RETURNS void LANGUAGE sql BEGIN ATOMIC DELETE FROM core.outbox; END", "clear"),
        ("CREATE FUNCTION kind(o core.outbox) RETURNS text LANGUAGE sql RETURN o.event_type", "kind"),
        ("CREATE FUNCTION kinds(o core.outbox[]) RETURNS text LANGUAGE sql AS 'SELECT 1'", "kinds"),
        ("CREATE POLICY known ON orders USING (EXISTS (SELECT FROM core.outbox AS o WHERE o.source = note))", "known"),
        ("CREATE TABLE copies (o core.outbox)", "copies"),
        ("CREATE TABLE child () INHERITS (core.outbox)", "child"),
        (COUNTED, "counted"),
    ],
)
async def test_what_a_partitioned_table_cannot_keep_is_named_and_nothing_is_changed(
    postgres: BusinessDatabase, statement: str, named: str
) -> None:
    await postgres.run(statement)

    with pytest.raises(UsageError, match=named):
        await divided(postgres)

    assert await postgres.rows("SELECT relkind::text FROM pg_class WHERE oid = 'core.outbox'::regclass") == [("r",)]


async def test_no_function_of_ours_is_bound_to_the_table_before_it_is_divided(postgres: BusinessDatabase) -> None:
    await divided(postgres)

    bound = "SELECT objid::regproc::text FROM pg_depend WHERE refobjid = 'core.outbox_before'::regclass"
    assert await postgres.rows(f"{bound} AND classid = 'pg_proc'::regclass") == []
