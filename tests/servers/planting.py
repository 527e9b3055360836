"""Somebody's functions in the schema `public`, each of which the server would rather call than its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg

# Each is what the server would rather call than its own, because the types are just those of the arguments.
PLANTED = {
    "concat_ws(text, oid, oid)": "text",
    "jsonb_build_array(text, bigint, text, text)": "jsonb",
    "json_build_array(bigint, bigint, bigint, bigint, bigint[], integer[], text)": "json",
    "cardinality(bigint[])": "integer",
    "array_remove(text[], text)": "text[]",
    "jsonb_build_object(text, text, text, bigint)": "jsonb",
}
CATCH = """
CREATE FUNCTION public.{name} RETURNS {type} LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.caught VALUES (current_user, '{name}');
  RETURN NULL;
END $$
"""
OPERATORS = """
CREATE FUNCTION public.product(numeric, integer) RETURNS numeric LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.caught VALUES (current_user, 'numeric * integer');
  RETURN $1 OPERATOR(pg_catalog.*) $2::numeric;
END $$;
CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.product);
CREATE FUNCTION public.differs(regproc, integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.caught VALUES (current_user, 'regproc <> integer');
  RETURN $1::oid OPERATOR(pg_catalog.<>) $2::oid;
END $$;
CREATE OPERATOR public.<> (LEFTARG = regproc, RIGHTARG = integer, FUNCTION = public.differs);
"""


@asynccontextmanager
async def planting(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of the owner, while the functions of a role without any other right lie in `public`."""
    owner = await asyncpg.connect(url)
    name = urlsplit(url).path[1:]
    await owner.execute("CREATE TABLE public.caught (who text, what text)")
    await owner.execute("GRANT INSERT ON public.caught TO PUBLIC")
    await owner.execute(f"CREATE ROLE author_{name}; GRANT CREATE, USAGE ON SCHEMA public TO author_{name}")
    await owner.execute(f"SET ROLE author_{name}")
    for function, type_ in PLANTED.items():
        await owner.execute(CATCH.format(name=function, type=type_))
    await owner.execute(OPERATORS)
    await owner.execute("RESET ROLE")
    await owner.execute(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    try:
        yield owner
    finally:
        await owner.execute(f"DROP OWNED BY author_{name} CASCADE; DROP ROLE author_{name}")
        await owner.close()


async def caught(owner: asyncpg.Connection) -> set[tuple[str, str]]:
    """Who has run which of them."""
    return {(who, what) for who, what in await owner.fetch("SELECT who, what FROM public.caught")}
