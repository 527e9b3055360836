"""`tape serve`: serve the journal on this machine, over HTTP and gRPC."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from tape.cli import output
from tape.cli.choices import Choices, shared
from tape.cli.interrupts import interrupts
from tape.cli.producers import load_producers
from tape.cli.spans import DurationType

if TYPE_CHECKING:
    from tape.server.http.address import Address
    from tape.serving import Service


@click.command()
@click.option(
    "--http", metavar="HOST:PORT", help="Where to listen; port 0 is any.  [default: TAPE_HTTP, 127.0.0.1:7880]"
)
@click.option(
    "--grpc", metavar="HOST:PORT", help="Where to listen for gRPC.  [default: TAPE_GRPC, 127.0.0.1:7878 if it is free]"
)
@click.option("--lake", metavar="DIR", help="Where archived entries are.  [default: TAPE_LAKE, <data>/lake]")
@click.option(
    "--event-ring-size",
    type=click.IntRange(1, 1_000_000),
    default=8_000,
    show_default=True,
    help="How many events of a run memory or Redis keeps.",
)
@click.option(
    "--reap-after",
    type=DurationType(),
    default="30m",
    show_default=True,
    help="When memory or Redis lets go of a closed run.",
)
@click.option(
    "--max-subscribers", type=click.IntRange(1, 100_000), default=64, show_default=True, help="Streams on one run."
)
@click.option(
    "--producers",
    multiple=True,
    metavar="MODULE[:NAME]",
    help="Load producers that a fork can name, beside the arena; may be repeated.",
)
@shared
@click.pass_obj
def serve(
    choices: Choices,
    http: str | None,
    grpc: str | None,
    lake: str | None,
    event_ring_size: int,
    reap_after: timedelta,
    max_subscribers: int,
    producers: tuple[str, ...],
) -> None:
    """Serve the journal over HTTP and gRPC until a signal says to stop; a second one stops at once.

    One line says that it is ready and where. Only this machine can reach it.
    """
    service = _service(choices, http, lake, event_ring_size, reap_after, max_subscribers)
    service = replace(service, producers=load_producers(producers), **_rpc(grpc))
    log_to_stderr()
    os.umask(0o077)  # files created from now on are readable by their owner only
    _run(service, choices)


def _service(
    choices: Choices, http: str | None, lake: str | None, ring: int, reap_after: timedelta, max_subscribers: int
) -> Service:
    from tape.core.folder import local_folder
    from tape.server.http.address import Address
    from tape.serving import Service
    from tape.settings import Settings

    settings = Settings.read(os.environ)
    store, is_unsafe = choices.location()
    return Service(
        store=store,
        http=Address.parse(http or settings.http),
        data=settings.data,
        origins=settings.allowed_origins,
        event_ring_size=ring,
        reap_after=reap_after,
        max_subscribers=max_subscribers,
        unsafe_durability=is_unsafe,
        listen_url=settings.listen_url,
        lake=local_folder(lake, "--lake") if lake else settings.lake_folder,
    )


def _rpc(grpc: str | None) -> dict[str, Any]:
    """The gRPC address; the default port may be taken, a requested one must be free."""
    from tape.server.http.address import Address
    from tape.settings import GRPC, Settings

    place = grpc or Settings.read(os.environ).grpc
    return {"grpc": Address.parse(place), "needs_grpc": grpc is not None or place != GRPC}


def log_to_stderr() -> None:
    """Writes log events as JSON lines to stderr."""
    from tape.telemetry import JsonLines

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the C core logs nothing; errors are logged by us
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("tape")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


def _run(service: Service, choices: Choices) -> None:
    from tape import serving

    serve_it = partial(serving.serve, service, partial(_write_ready, choices))
    interrupts.run(serve_it, use_uvloop=find_spec("uvloop") is not None)


def _write_ready(choices: Choices, address: Address, grpc: Address | None) -> None:
    rpc = None if grpc is None else grpc.url.replace("http://", "tape://")
    if choices.is_json:
        output.write_json({"url": address.url, "grpc": rpc, "pid": os.getpid()})
    else:
        beside = "" if rpc is None else f" and {output.paint(rpc, 'bold')}"
        output.write(f"tape serves at {output.paint(address.url, 'bold')}{beside}")
    output.flush()
