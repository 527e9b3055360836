"""The reference pages, generated from the code they describe."""

import re
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from tape.cli.choices import Choices
from tape.cli.main import tape
from tape.core import errors
from tape.core.errors import TapeError
from tape.operations.catalogue import ALL, OPERATIONS
from tape.operations.fields import meaning_of
from tape.operations.operation import Operation
from tape.operations.surfaces import row_of
from tape.server.http.route import Route
from tape.server.routes import asyncapi, openapi
from tape.server.routes.table import ROUTES
from tape.telemetry import Counter, Meters
from tape.wire.operation_json import request_type

SURFACES: Final = {"http": "HTTP", "grpc": "gRPC", "cli": "command", "sdk": "SDK"}
PACKAGE = Path(import_module("tape").__file__ or "").parent
WIDTH = 80  # the narrowest terminal that help is written for
STATUSES = ("http_status", "grpc_status", "exit_code")


def pages() -> dict[str, str]:
    """The pages of the reference by their path."""
    made = {
        "cli": command_line(),
        "operations": operations(),
        "http": http(ROUTES),
        "streams": streams([route for route in ROUTES if route.is_stream]),
        "grpc": grpc(),
        "errors": error_table(),
        "metrics": metrics(),
        "schema": schema(),
    }
    return {f"reference/{name}.md": "\n".join(lines) + "\n" for name, lines in made.items()}


def command_line() -> Iterator[str]:
    yield from ("# Command line", "", "The output of `--help` for every command.", "")
    for path, command, context in commands():
        yield from (f"## {' '.join(path)}", "", "```", command.get_help(context), "```", "")


def commands() -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
    """Every command, from the root down."""
    names = ["-h", "--help"]
    root = click.Context(tape, info_name="tape", obj=Choices(), terminal_width=WIDTH, help_option_names=names)
    yield from _below(("tape",), tape, root)


def _below(
    path: tuple[str, ...], command: click.Command, context: click.Context
) -> Iterator[tuple[tuple[str, ...], click.Command, click.Context]]:
    yield path, command, context
    if not isinstance(command, click.Group):
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None:
            below = click.Context(child, info_name=name, parent=context, obj=context.obj)
            yield from _below((*path, name), child, below)


def operations() -> Iterator[str]:
    """On which surfaces each operation can be called, how, and what its fields mean."""
    yield from ("# Operations", "", "Every operation is defined once. `GET /operations` and `tape operations --json`")
    yield from ("return what is on this page. SDK methods are those of `tape.connect(…)`.", "")
    yield from (f"| operation | access to | repeated | {' | '.join(SURFACES.values())} |", "|---" * 7 + "|")
    for each in ALL:
        row = row_of(each)
        places = ("–" if row[surface] is None else "✓" for surface in SURFACES)
        yield f"| `{each.name}` | {row['verb']} {row['scope']} | {row['repeat']} | {' | '.join(places)} |"
    for each in ALL:
        yield from ("", f"## {each.name}", "", each.summary, "")
        yield from _surfaces(row_of(each))
        if each in OPERATIONS:
            yield from _fields(each)


def _surfaces(row: dict[str, Any]) -> Iterator[str]:
    """How an operation is called on each surface, and why it is not on the others."""
    names = {**row, "http": f"{row['http']['method']} {row['http']['path']}" if row["http"] else None}
    yield " · ".join(f"{title} `{names[each]}`" for each, title in SURFACES.items() if names[each])
    for each, why in row["except"].items():
        yield from ("", f"Not on {SURFACES[each]}: {why}")


def _fields(operation: Operation) -> Iterator[str]:
    yield from ("", "| field | meaning |", "|---|---|")
    for field in msgspec.structs.fields(request_type(operation)):
        needed = ", required" if field.required else ""
        yield f"| `{field.name}`{needed} | {cell(meaning_of(operation.request, field.name))} |"


def http(routes: tuple[Route, ...]) -> Iterator[str]:
    paths = openapi.document(routes)["paths"]
    yield from ("# HTTP", "", "Generated from the same definitions as `GET /openapi.json`.", "")
    yield from ("| request | does | success | errors |", "|---|---|---|---|")
    asked = [(path, method, about) for path, methods in paths.items() for method, about in methods.items()]
    for path, method, about in asked:
        good, bad = _answers(about["responses"])
        yield f"| `{method.upper()} {path}` | {about['summary']} | {good} | {bad} |"
    for path, method, about in asked:
        if about.get("parameters"):
            yield from ("", f"## {method.upper()} {path}", "", "| parameter | in | meaning |", "|---|---|---|")
            for each in about["parameters"]:
                yield f"| `{each['name']}` | {each['in']} | {cell(each['description'])} |"


def _answers(responses: dict[str, Any]) -> tuple[str, str]:
    good = [status for status in responses if status < "400"]
    rare = set(map(str, openapi.ALWAYS))
    return ", ".join(good), ", ".join(status for status in responses if status >= "400" and status not in rare)


def streams(routes: list[Route]) -> Iterator[str]:
    document = asyncapi.document(routes)
    yield from (
        "# Streams",
        "",
        "Generated from the same definitions as `GET /asyncapi.json`.",
        "",
        "| stream | sends |",
        "|---|---|",
    )
    for channel in document["channels"].values():
        yield f"| `{channel['address']}` | {cell(channel['description'])} |"
    for name, frame in document["components"]["schemas"].items():
        yield from ("", f"## {name}", "", cell(frame.get("description", "")), "", "| field | type |", "|---|---|")
        for field, about in frame.get("properties", {}).items():
            yield f"| `{field}` | {cell(str(about.get('type') or 'any'))} |"


def grpc() -> Iterator[str]:
    proto = (PACKAGE / "wire" / "tape.proto").read_text(encoding="utf-8")
    yield from (
        "# gRPC",
        "",
        "The service `tape.v1.Tape`, from `tape.proto`.",
        "",
        "| call | request | response |",
        "|---|---|---|",
    )
    for name, takes, gives in re.findall(r"rpc (\w+)\(((?:stream )?\w+)\) returns \(((?:stream )?\w+)\)", proto):
        yield f"| `{name}` | `{takes}` | `{gives}` |"
    yield from ("", "## The file", "", "```proto", proto.rstrip(), "```")


def error_table() -> Iterator[str]:
    yield from (
        "# Errors",
        "",
        "Over HTTP an error is problem+json with the code; a command exits with the number.",
        "",
    )
    yield from ("| error | code | HTTP | gRPC | exit | meaning |", "|---|---|---|---|---|---|")
    for each in sorted(error_classes(), key=lambda error: (error.http_status, error.__name__)):
        code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each.__name__).lower()
        http, rpc, end = (getattr(each, name) for name in STATUSES)
        yield f"| `{each.__name__}` | `{code}` | {http} | {rpc} | {end} | {cell(cleandoc(each.__doc__ or ''))} |"


def error_classes() -> list[type[TapeError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [value for value in found if issubclass(value, TapeError) and value is not TapeError]


def metrics() -> Iterator[str]:
    yield from (
        "# Metrics",
        "",
        "The metrics of `GET /metrics`.",
        "",
        "| metric | kind | labels | meaning |",
        "|---|---|---|---|",
    )
    for meter in Meters().all():
        labels = ", ".join(f"`{label}`" for label in meter.labels) if isinstance(meter, Counter) else ""
        yield f"| `{meter.name}` | {type(meter).__name__.lower()} | {labels or '–'} | {meter.help} |"


def schema() -> Iterator[str]:
    yield from ("# Schema", "", "The migrations, in the order in which `tape migrate` applies them.")
    for dialect in ("postgres", "sqlite"):
        for path in sorted((PACKAGE / "store" / dialect / "schema").rglob("*.sql")):
            name = path.relative_to(PACKAGE / "store").as_posix()
            yield from ("", f"## {name}", "", "```sql", path.read_text(encoding="utf-8").rstrip(), "```")


def cell(text: str) -> str:
    """The text as one line of a table cell."""
    return " ".join(text.split()).replace("|", "\\|")
