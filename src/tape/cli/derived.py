"""A command `tape <noun> <verb>` for each operation that has no command of its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import click
import msgspec

from tape.cli import output
from tape.cli.choices import Choices, run as finish, shared
from tape.cli.doctor.facts import write_facts
from tape.core import codec
from tape.core.errors import NotFound, RunNotFound
from tape.operations.catalogue import OPERATIONS
from tape.operations.fields import meaning_of
from tape.operations.operation import Operation
from tape.operations.surfaces import key_fields, may_be_all_runs, surfaces_of
from tape.wire.operation_json import example_of, read_text, request_of, request_type
from tape.wire.result_json import is_list, result_type, write_result

if TYPE_CHECKING:
    from tape.operations.operation import OperationRequest

MAX_SHOWN: Final = 5
FIRST: Final = ("status", "number", "decision_index", "idempotency_key", "timer_id", "gate", "session", "key", "run_id")


def add_operations(group: click.Command, noun: str) -> None:
    """Adds the operations of a noun that the group has no command for."""
    assert isinstance(group, click.Group)
    for operation in OPERATIONS:
        path = surfaces_of(operation).cli
        if path is not None and path.startswith(f"tape {noun} ") and path.split()[2] not in group.commands:
            group.add_command(_command(operation, path.split()[2]))


def _command(operation: Operation, name: str) -> click.Command:
    @click.pass_obj
    def call(choices: Choices, /, **given: Any) -> None:
        _write(choices, operation, finish(partial(_call, choices, operation, _request(operation, given))))

    command = click.command(name, help=operation.summary, params=list(_parameters(operation)))(call)
    command.epilog = f"\b\nExample:\n  {_example(operation, f'tape {operation.noun} {name}')}"
    return shared(command)


def _example(operation: Operation, path: str) -> str:
    found, keys = example_of(operation), key_fields(operation)
    options = [f"--{name.replace('_', '-')} {_quoted(value)}" for name, value in found.items() if name not in keys]
    return " ".join((path, *(_quoted(found[name]) for name in keys), *options))


def _quoted(value: Any) -> str:
    return shlex.quote(value if isinstance(value, str) else msgspec.json.encode(value).decode())


async def _call(choices: Choices, operation: Operation, request: OperationRequest[Any]) -> dict[str, Any]:
    async with choices.open_operations(must_exist=True) as operations:
        try:
            found = write_result(operation, await operations.call(request))
        except NotFound as error:
            what = f"there is no run {error.run_id!r}" if isinstance(error, RunNotFound) else error
            raise NotFound(f"{what}{_way_on(operation)}") from error
        if found is None:
            raise NotFound(f"there is no such {operation.noun}{_way_on(operation)}")
        return found
    raise AssertionError("unreachable")


def _way_on(operation: Operation) -> str:
    """How to find what there is, if a list needs nothing else."""
    lists = [each for each in OPERATIONS if each.name == f"{operation.noun}.list" and not key_fields(each)]
    return f"; tape {operation.noun} ls lists those there are" if lists else ""


def _request(operation: Operation, given: Mapping[str, Any]) -> OperationRequest[Any]:
    fields = {each.name: each.type for each in msgspec.structs.fields(request_type(operation))}
    texts = {name: value for name, value in given.items() if value not in (None, ())}
    read = {name: codec.decode(text) if _is_object(fields[name]) else text for name, text in texts.items()}
    return request_of(operation, read_text(operation, read))


def _parameters(operation: Operation) -> Iterator[click.Parameter]:
    """The key fields as arguments, the others as options."""
    keys = key_fields(operation)
    fields = {each.name: each for each in msgspec.structs.fields(request_type(operation))}
    for name in keys:
        word, is_needed = name.removesuffix("_id").upper(), name != "run_id" or not may_be_all_runs(operation)
        yield click.Argument([name], metavar=word if is_needed else f"[{word}]", required=is_needed)
    for name, field in fields.items():
        if name not in keys:
            yield _option(name, meaning_of(operation.request, name), field.type, is_required=field.required)


def _option(name: str, about: str, kind: Any, *, is_required: bool) -> click.Option:
    flag = f"--{name.replace('_', '-')}"
    kinds = [_bare(each) for each in (kind, *get_args(kind))]
    if bool in kinds:
        return click.Option([flag, name], is_flag=True, default=None, help=about)
    enum = next((each for each in kinds if isinstance(each, type) and issubclass(each, Enum)), None)
    values = [] if enum is None else [_word(each) for each in enum]
    return click.Option(
        [flag, name],
        type=click.Choice(values) if values else None,
        metavar=_metavar(kind, kinds, values),
        multiple=any(get_origin(each) is list for each in kinds),
        required=is_required,
        help=f"{about} One of {', '.join(values)}." if len(values) > MAX_SHOWN else about,
    )


def _word(member: Enum) -> str:
    return member.name.lower() if isinstance(member, IntEnum) else str(member.value)


def _metavar(kind: Any, kinds: Sequence[Any], values: Sequence[str]) -> str | None:
    if values:
        return None if len(values) <= MAX_SHOWN else "WORD"
    return "JSON" if _is_object(kind) else "N" if int in kinds else "TEXT"


def _bare(kind: Any) -> Any:
    """The type behind an annotation."""
    return getattr(kind, "__origin__", kind) if hasattr(kind, "__metadata__") else kind


def _is_object(kind: Any) -> bool:
    kinds = (kind, *get_args(kind))
    return any(
        get_origin(each) is dict or (isinstance(each, type) and issubclass(each, msgspec.Struct)) for each in kinds
    )


def _write(choices: Choices, operation: Operation, found: dict[str, Any]) -> None:
    rows = next(iter(found.values())) if is_list(operation.result) else None
    if rows is None and choices.is_json:
        output.write_json(found)
    elif rows is None:
        write_facts(dict(_flat(msgspec.structs.asdict(msgspec.convert(found, result_type(operation))))))
    elif choices.is_json:
        for row in rows:
            output.write_json(row)
    else:
        output.listing(map(_line, rows), f"there is no {operation.noun} like that")
    if found.get("next_cursor"):
        output.note(f"there are more: --cursor {found['next_cursor']}")


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    """The fields that name a record, and the first of the others that have a value."""
    facts = dict(_flat(row))
    named = [name for name in FIRST if name in facts]
    others = [
        f"{name}={value}" for name, value in facts.items() if name not in named and value not in ("", None, False, 0)
    ]
    return (*(output.escape(str(facts[name])) for name in named), output.escape(" ".join(others)))


def _flat(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of a record; those of its parts have the part's name before them."""
    for name, value in found.items():
        if isinstance(value, msgspec.Struct):
            value = msgspec.structs.asdict(value)
        if isinstance(value, dict):
            yield from ((f"{name}.{inner}", each) for inner, each in _flat(value))
        else:
            yield name, value
