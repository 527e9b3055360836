"""Tables of another role in the place of Tape's tables are refused before they are used."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg
import pytest

from tape.core.errors import UsageError
from tape.outbox import migrate
from tape.store.postgres.store import open_store
from tests.contract.reactions import publish
from tests.servers.planting import caught

STEPS = """
CREATE TABLE {schema}.tape_schema (
  line text NOT NULL, number integer NOT NULL, name text NOT NULL, applied_at bigint NOT NULL,
  PRIMARY KEY (line, number)
);
GRANT ALL ON {schema}.tape_schema TO PUBLIC;
"""
CATCH = """
CREATE FUNCTION public.catch() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.caught VALUES (current_user, 'catch'); RETURN true; END $$;
CREATE FUNCTION public.catch_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.caught VALUES (current_user, TG_TABLE_NAME); RETURN NEW; END $$;
"""
TRIGGER = "CREATE TRIGGER t BEFORE INSERT ON {schema}.tape_schema FOR EACH ROW EXECUTE FUNCTION public.catch_row()"
POLICY = """ALTER TABLE {schema}.tape_schema ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON {schema}.tape_schema USING (public.catch()) WITH CHECK (public.catch())"""
VIEW = """CREATE VIEW {schema}.tape_schema AS SELECT 'journal'::text AS line, 1 AS number WHERE public.catch();
GRANT ALL ON {schema}.tape_schema TO PUBLIC"""
FUNCTION = "CREATE FUNCTION public.{name} RETURNS bigint LANGUAGE sql RETURN public.catch()::integer"
PLANTED = {"trigger": STEPS + TRIGGER, "policy": STEPS + POLICY, "view": VIEW}


@dataclass(frozen=True, slots=True)
class Server:
    """A database with a role for Tape, one that may create in `public`, and a connection of its owner."""

    url: str
    owner: asyncpg.Connection
    name: str

    def as_role(self, role: str) -> str:
        parts = urlsplit(self.url)
        return parts._replace(netloc=f"{role}_{self.name}@{parts.hostname}:{parts.port}").geturl()

    async def plant(self, statements: str) -> None:
        await self.owner.execute(f"SET ROLE author_{self.name}; {CATCH} {statements}; RESET ROLE")


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[Server]:
    owner = await asyncpg.connect(postgres_url)
    name = urlsplit(postgres_url).path[1:]
    both = f"tape_{name}, author_{name}"
    await owner.execute(f"CREATE ROLE tape_{name} LOGIN; CREATE ROLE author_{name}")
    await owner.execute(f"GRANT CREATE ON DATABASE {name} TO {both}; GRANT CREATE, USAGE ON SCHEMA public TO {both}")
    await owner.execute("CREATE TABLE public.caught (who text, what text); GRANT INSERT ON public.caught TO PUBLIC")
    yield Server(postgres_url, owner, name)
    await owner.execute(f"DROP OWNED BY {both} CASCADE; DROP ROLE {both}")
    await owner.close()


@pytest.mark.parametrize("is_superuser", [False, True])
@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
async def test_a_planted_table_of_steps_is_refused_and_runs_nothing(
    server: Server, planted: str, is_superuser: bool
) -> None:
    await server.plant(planted.format(schema="public"))

    with pytest.raises(UsageError, match=r"public\.tape_schema belongs to the role author"):
        async with open_store(server.url if is_superuser else server.as_role("tape")):
            pass

    assert await caught(server.owner) == set()


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        ("CREATE TABLE public.tape_page_claims (n integer)", r"public\.tape_page_claims"),
        ("CREATE VIEW public.tape_meta AS SELECT 1 AS only_row", r"public\.tape_meta"),
        (FUNCTION.format(name="tape_now_ms()"), r"public\.tape_now_ms"),
        (FUNCTION.format(name="tape_previous(text, integer)"), r"public\.tape_previous"),
    ],
)
async def test_whatever_is_planted_with_one_of_our_names_is_refused(server: Server, planted: str, named: str) -> None:
    await server.plant(planted)

    with pytest.raises(UsageError, match=named):
        async with open_store(server.as_role("tape")):
            pass

    assert await caught(server.owner) == set()


async def test_a_function_that_is_planted_beside_one_of_a_journal_is_refused(server: Server) -> None:
    async with open_store(server.as_role("tape")) as store:
        await publish(store, 1)
    await server.plant(FUNCTION.format(name="tape_previous(text, integer)"))

    with pytest.raises(UsageError, match=r"public\.tape_previous"):
        async with open_store(server.as_role("tape")):
            pass


async def test_a_journal_is_not_made_in_a_schema_that_another_role_made_for_ours(server: Server) -> None:
    await server.plant(f"CREATE SCHEMA tape_{server.name}; GRANT ALL ON SCHEMA tape_{server.name} TO PUBLIC")

    with pytest.raises(UsageError, match="the schema tape_"):
        async with open_store(server.as_role("tape")):
            pass


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
async def test_an_outbox_is_not_made_in_a_schema_of_another_role(server: Server, planted: str) -> None:
    await server.plant("CREATE SCHEMA core; GRANT ALL ON SCHEMA core TO PUBLIC;" + planted.format(schema="core"))

    with pytest.raises(UsageError, match="belongs to the role author"):
        await migrate(server.as_role("tape"))

    assert await caught(server.owner) == set()


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        *((each.format(schema="core"), r"core\.tape_schema") for each in PLANTED.values()),
        ("CREATE TABLE core.event_handlers (n integer)", r"core\.event_handlers"),
        ("CREATE FUNCTION core.outbox_notify(integer) RETURNS integer LANGUAGE sql RETURN 1", r"core\.outbox_notify"),
    ],
)
async def test_what_is_planted_in_the_schema_of_an_outbox_is_refused(server: Server, planted: str, named: str) -> None:
    await server.owner.execute(
        f"CREATE SCHEMA core; GRANT ALL ON SCHEMA core TO author_{server.name}, tape_{server.name}"
    )
    await server.plant(planted)

    with pytest.raises(UsageError, match=named):
        await migrate(server.as_role("tape"))

    assert await caught(server.owner) == set()


async def test_a_journal_of_a_role_whose_rights_ours_inherits_is_opened(server: Server) -> None:
    async with open_store(server.as_role("tape")) as store:
        await publish(store, 1)
    await server.owner.execute(f"CREATE ROLE other_{server.name} LOGIN IN ROLE tape_{server.name}")

    async with open_store(server.as_role("other")) as store:
        await publish(store, 1)

        assert (await store.journal.bounds()).head == 2
    await server.owner.execute(f"DROP ROLE other_{server.name}")
