"""What is not on a surface, and what on a surface is no operation: each with its reason."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_TABLE_LOCK: Final = "It locks the table and needs its owner's rights, so an operator runs it at the database."
_SQL_ROWS: Final = "A result of SQL has any columns, which tape.proto has no message for; HTTP and the shell have it."
_SPARK: Final = "It runs Spark for minutes; HTTP and the shell follow its progress."

EXCEPTIONS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        **{("outbox.partition", surface): _TABLE_LOCK for surface in ("http", "grpc", "sdk")},
        **{
            (f"lake.{verb}", on): _SQL_ROWS for verb in ("status", "tables", "table", "query") for on in ("grpc", "sdk")
        },
        **{
            (f"reaction.{verb}", surface): _SPARK
            for verb in ("dry-run", "backfill", "searches", "cancel-search")
            for surface in ("grpc", "sdk")
        },
        **{("node.metrics", surface): "Prometheus scrapes it over HTTP." for surface in ("grpc", "cli", "sdk")},
        ("value.watch", "http"): "Versions of values are entries: GET /events streams them by subject.",
        ("lake.tables", "cli"): "`tape lake tables` brings the tables up to date and prints how far each has come.",
        ("lake.table", "cli"): "`tape lake query` prints any table.",
        ("reaction.searches", "cli"): "A command shows the progress of its own search until it ends.",
        ("reaction.cancel-search", "cli"): "A command's own search ends with it, at Ctrl-C.",
        (
            "node.capabilities",
            "cli",
        ): "`tape operations` says what this program, or a server, knows.",
        ("node.capabilities", "sdk"): "A client asks for it by itself, once for each connection.",
    }
)

OTHER_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PUT /reactions/{reaction_id}": "reaction.register",
        "GET /runs/{run_id}/events/{seq}": "event.list",
        "GET /session/{run_id}/events": "event.stream",
        "GET /values/{namespace}/{key}/history": "value.watch",
        "SubscribeRun": "event.stream",
        "SubscribeEvents": "event.stream",
        "SubscribeBySubject": "event.stream",
        "tape value history": "value.watch",
        "tape run sweep": "run.fork",
    }
)  # other forms of an operation

_SUPERVISOR: Final = "A supervisor asks it without a permission; it tells nothing that is in the store."
_DOCUMENT: Final = "It describes the server and reads no store."
_CONSOLE: Final = "It is a file of the console, which calls the other routes."
_NO_STORE: Final = "It reads no store."
_WORKER: Final = "It is a process that calls operations until it is stopped."
_TABLES: Final = "It makes tables with the rights of their owner, before there is a server."
_ROWS: Final = "It works on the rows of the store itself, at the database."
_FILES: Final = "It works on the files of the lake, where they are."

NO_OPERATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "GET /health": _SUPERVISOR,
        "GET /ready": _SUPERVISOR,
        "GET /operations": _DOCUMENT,
        "GET /openapi.json": _DOCUMENT,
        "GET /asyncapi.json": _DOCUMENT,
        "GET /": _CONSOLE,
        "GET /assets/{name}": _CONSOLE,
        "GET /assets/{folder}/{name}": _CONSOLE,
        "tape serve": _WORKER,
        "tape work": _WORKER,
        "tape outbox relay": _WORKER,
        "tape demo": "It shows everything in a store of its own.",
        "tape migrate": _TABLES,
        "tape outbox migrate": _TABLES,
        "tape doctor": "It examines the machine, the files and the tables, which a server may not be able to tell.",
        "tape check-history": _NO_STORE,
        "tape operations": _NO_STORE,
        "tape completion": _NO_STORE,
        "tape outbox contracts check": _NO_STORE,
        "tape outbox contracts catalog": _NO_STORE,
        "tape journal verify": _ROWS,
        "tape journal archive": _ROWS,
        **{
            f"tape lake {verb}": _FILES for verb in ("sync", "compact", "vacuum", "verify", "as-of", "tables", "report")
        },
    }
)
