"""The command `tape`: finds the subcommand, runs it, and returns its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from tape.cli import output
from tape.cli.choices import Choices, shared
from tape.cli.examples import add_examples
from tape.cli.extras import missing
from tape.cli.interrupts import interrupts
from tape.cli.noun_group import ABOUT, group_of

if TYPE_CHECKING:
    from tape.core.errors import TapeError

COMMANDS: Final = (
    "serve",
    "demo",
    "publish",
    "tail",
    "run",
    "value",
    "decision",
    "effect",
    "obligation",
    "gate",
    "timer",
    "budget",
    "session",
    "reaction",
    "task",
    "work",
    "journal",
    "outbox",
    "lake",
    "migrate",
    "doctor",
    "check-history",
    "operations",
    "completion",
)
PACKAGES: Final = frozenset({"demo", "doctor", "lake", "outbox", "reaction", "run"})
BROKEN_PIPE: Final = 141
DATABASES: Final = {"asyncpg": "Postgres", "sqlite3": "SQLite", "redis": "Redis", "_duckdb": "DuckDB"}


class Commands(click.Group):
    """Imports a command when it is used. It ends quietly if it is interrupted or its output is closed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = _command(cmd_name)
        add_examples(command, f"tape {cmd_name}")
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with interrupts.raising():
                code = super().invoke(ctx)
                output.flush()
        except KeyboardInterrupt:
            return interrupts.code
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
            return BROKEN_PIPE
        return code


def _command(name: str) -> click.Command:
    if name in ABOUT:
        return group_of(name)
    word = name.replace("-", "_")
    module = f"tape.cli.{word}.command" if name in PACKAGES else f"tape.cli.{word}"
    command: click.Command = getattr(import_module(module), word)
    return command


def _version(context: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from tape.cli.doctor.command import tape_version

        output.write(f"tape {tape_version()}")
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@shared
def tape() -> None:
    """One durable journal, and everything that reads it."""


add_examples(tape, "tape")


def main() -> NoReturn:
    interrupts.listen()
    interrupts.end(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs a command and returns its exit code."""
    choices = Choices()
    try:
        return tape.main(list(arguments) or ["--help"], "tape", standalone_mode=False, obj=choices) or 0
    except click.ClickException as error:
        return _refuse(error, "--json" in arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, one line says it
        return _fail(error, choices.is_json)
    finally:
        output.flush()


def _refuse(error: click.ClickException, is_json: bool) -> int:
    sentence = _meant(error) or error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "tape"
    _write_error(
        f"{sentence[:1].lower()}{sentence[1:]}; see {path} --help", "usage_error", 400, error.exit_code, is_json
    )
    return error.exit_code


def _meant(error: click.ClickException) -> str | None:
    """The option that a misspelt one probably stands for."""
    if not isinstance(error, click.NoSuchOption) or not error.possibilities:
        return None
    return f"there is no option {error.option_name}; you may mean {' or '.join(sorted(error.possibilities))}"


def _fail(error: Exception, is_json: bool) -> int:
    cause = _first(error)
    ours = _ours(error) or missing(cause)
    if ours is not None:
        _write_error(_sentence(ours), ours.code, ours.http_status, ours.exit_code, is_json)
        return ours.exit_code
    if sys.flags.dev_mode:
        raise error
    database = _database_of(cause)
    sentence = (
        f"{database} refused a statement: {_one_line(cause)}"
        if database
        else f"internal error: {type(cause).__name__}: {_one_line(cause)}; run it with PYTHONDEVMODE=1 to see where"
    )
    _write_error(sentence, "store_failed" if database else "internal", 500, 1, is_json)
    return 1


def _first(error: BaseException) -> BaseException:
    """The error itself, or the first one of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _database_of(error: BaseException) -> str | None:
    """The database that raised the error, if one did."""
    roots = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return next((name for root, name in DATABASES.items() if root in roots), None)


def _one_line(error: BaseException) -> str:
    """The error's message in one line, with its SQLSTATE if it has one."""
    text = " ".join(str(error).split()) or type(error).__name__
    state = getattr(error, "sqlstate", None)
    return f"{text} (SQLSTATE {state})" if state else text


def _sentence(error: TapeError) -> str:
    """The error's message, with the command that helps."""
    from tape.core.errors import Corrupt, RunNotFound

    if isinstance(error, RunNotFound):
        return f"run {error.run_id!r} is not open: there is no such run; publish with --open to open it"
    if isinstance(error, Corrupt) and error.global_seq is not None:
        return f"{error}; --from {error.global_seq} goes on behind it, and tape journal verify says more"
    return str(error)


def _ours(error: BaseException) -> TapeError | None:
    """The Tape error to report, also from within a group."""
    from tape.core.errors import TapeError

    if isinstance(error, TapeError):
        return error
    parts = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for part in parts if (found := _ours(part)) is not None), None)


def _write_error(sentence: str, code: str, status: int, exit_code: int, is_json: bool) -> None:
    if is_json:
        output.note_json({"code": code, "detail": sentence, "status": status, "exit_code": exit_code})
    else:
        output.note(output.escape(sentence))


if __name__ == "__main__":
    main()
