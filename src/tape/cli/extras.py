"""Which extra of the package provides a missing import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tape.core.errors import UsageError

EXTRAS: Final = {
    "adbc_driver_postgresql": "spark",
    "asyncpg": "postgres",
    "cel_expr_python": "cel",
    "confluent_kafka": "kafka",
    "deltalake": "spark",
    "duckdb": "duckdb",
    "google.cloud.pubsub_v1": "pubsub",
    "google.protobuf": "grpc",
    "grpc": "grpc",
    "grpc_health": "grpc",
    "grpc_reflection": "grpc",
    "grpc_status": "grpc",
    "httpcore": "webhook",
    "httptools": "server",
    "httpx": "sdk",
    "matplotlib": "spark",
    "nats": "nats",
    "opentelemetry": "otel",
    "pandas": "spark",
    "pyarrow": "spark",
    "pyspark": "spark",
    "redis": "redis",
    "uvicorn": "server",
    "uvloop": "server",
}


def missing(error: BaseException) -> UsageError | None:
    """An error that names the extra, if the missing package belongs to one."""
    from tape.core.errors import UsageError

    for part in _parts(error):
        extra = EXTRAS.get(part.name or "") or EXTRAS.get((part.name or "").partition(".")[0])
        if extra is not None:
            return UsageError(f"this needs the package {part.name}; install tape-bus[{extra}]")
    return None


def _parts(error: BaseException) -> Iterator[ModuleNotFoundError]:
    if isinstance(error, ModuleNotFoundError):
        yield error
    for part in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _parts(part)
