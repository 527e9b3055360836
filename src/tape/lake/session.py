"""Opens the Spark session of a process: local, on a cluster, or through a Spark Connect server."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tape.core.errors import UsageError, quoted
from tape.lake.java import find_java, launch_home
from tape.lake.spark_settings import MASTER, REMOTE, declared, is_submitted
from tape.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPLICATION: Final = "tape"
LOOPBACK: Final = "127.0.0.1"
LEAST_MEMORY: Final = 1 << 30
MOST_MEMORY: Final = 4 << 30
SHARE: Final = 4  # a driver gets at most 1/4 of the machine's memory
_is_local = re.compile(r"local(\[(\*|\d+)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?").fullmatch
_is_remote = re.compile(r"yarn|k8s://[^@\s]+|spark://[^/@\s]+|sc://[^/@\s]+(/\S*)?").fullmatch

ALWAYS: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
ON_THIS_MACHINE: Final = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.sql.shuffle.partitions": "8",
    "spark.ui.enabled": "false",  # it would listen on every address
}
# Spark checks NULLs and bounds itself, so Arrow need not check both at every value.
UNCHECKED: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
# Exceptions say what the user has to know; the JVM's other messages go to a file.
LOGGING: Final = """status = fatal
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${{sys:tape.log:-{log}}}
appender.file.filePattern = {log}.%i
appender.file.filePermissions = rw-------
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = SizeBasedTriggeringPolicy
appender.file.policies.size = 8MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
rootLogger.level = {level}
rootLogger.appenderRef.file.ref = file
"""


@contextmanager
def open_session(
    master: str, folder: Path, options: Mapping[str, str] | None = None, *, log_level: str = "warn"
) -> Iterator[SparkSession]:
    """Opens a session and stops it at the end; an existing session of this process is shared and not stopped.

    The master is the one that Spark's own settings name (see `spark_settings`), else the given one. The folder holds
    Spark's launcher, log and scratch files.
    """
    check_master(master)
    if find_spec("pyspark") is None:
        raise UsageError("this needs the package pyspark; install tape-bus[spark]")
    shared = _running()
    if shared is not None:
        yield shared
        return
    session = _new_session(master, folder, options or {}, log_level)
    try:
        yield session
    finally:
        session.stop()


def _new_session(master: str, folder: Path, options: Mapping[str, str], log_level: str) -> SparkSession:
    if is_submitted(os.environ):
        return _submitted(options)
    known = declared(os.environ)
    master = chosen_master(known, master)
    if REMOTE in known or master.startswith("sc://"):
        return _connected(master, {name: value for name, value in ALWAYS.items() if name not in known} | dict(options))
    return _started(master, folder, known, options, log_level)


def chosen_master(known: Mapping[str, str], default: str) -> str:
    """The master of Spark's own settings, else the default."""
    return known.get(REMOTE) or known.get(MASTER) or default


def open_spark(options: Mapping[str, str] | None = None) -> AbstractContextManager[SparkSession]:
    """Opens the session that `tape lake` uses: on the master of Spark's own settings, else on TAPE_SPARK_MASTER."""
    settings = Settings.read(os.environ)
    return open_session(settings.spark_master, settings.data / "spark", options)


def _running() -> SparkSession | None:
    """The session of this process, from any thread."""
    from pyspark.core.context import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        has_context = SparkContext._active_spark_context is not None  # noqa: SLF001 - there is no public way
        return SparkSession.builder.getOrCreate() if has_context else None


def check_master(master: str) -> str:
    if not _is_local(master) and not _is_remote(master):
        kinds = "local[*], local[N], local-cluster[N,CORES,MB], yarn, k8s://…, spark://host:port or sc://host:port"
        raise UsageError(f"TAPE_SPARK_MASTER must be {kinds}, not {quoted(master)}")
    return master


def configuration(master: str, folder: Path, logging: Path) -> dict[str, str]:
    """The settings of a session on this master; options of the caller override them."""
    java = f"-Dlog4j2.configurationFile={logging.as_uri()} -Duser.timezone=UTC {UNCHECKED}"
    return {
        **ALWAYS,
        **(ON_THIS_MACHINE if _is_local(master) else {}),
        "spark.driver.memory": f"{_memory() >> 20}m",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java if _is_local(master) else UNCHECKED,
        "spark.executorEnv.PYTHONPATH": _python_path(),
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }


def _submitted(options: Mapping[str, str]) -> SparkSession:
    """Opens a session in the JVM that spark-submit has started, with its settings."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.config(map={**options}).getOrCreate()
    known = session.sparkContext.getConf()
    for name, value in ALWAYS.items():
        if not known.contains(name):
            session.conf.set(name, value)
    return session


def _started(
    master: str, folder: Path, known: Mapping[str, str], options: Mapping[str, str], log_level: str
) -> SparkSession:
    """Starts a JVM as a child of this process and opens a session in it."""
    from pyspark.sql import SparkSession

    folder = folder.absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = launch_home(find_java(os.environ), folder)
    ours = configuration(master, folder, _logging(folder, log_level))
    given = {name: value for name, value in ours.items() if name not in known} | dict(options)
    builder = SparkSession.builder.master(master).appName(APPLICATION).config(map={**given})
    with _environment(_inherited(master, folder, home)):
        return builder.getOrCreate()


def _connected(url: str, options: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    if find_spec("grpc") is None:
        raise UsageError("sc:// needs the packages of pyspark[connect]; install tape-bus[spark]")
    return SparkSession.builder.remote(url).config(map={**options}).getOrCreate()


def _inherited(master: str, folder: Path, home: Path) -> dict[str, str]:
    local = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_WORKER_DIR": str(folder / "work")} if _is_local(master) else {}
    elsewhere = sys.executable if _is_local(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)
    python = {"PYSPARK_PYTHON": elsewhere, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {"JAVA_HOME": str(home), "PYTHONPATH": _python_path(), **python, **local}


def _python_path() -> str:
    """PYTHONPATH with Tape's own folder, for workers that do not have Tape installed."""
    ours = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))


def _logging(folder: Path, level: str) -> Path:
    path = folder / f"log4j2-{level}.properties"
    text = LOGGING.format(log=folder / "spark.log", level=level)
    path.write_text("".join(map(_property, text)), encoding="ascii")
    return path


def _property(character: str) -> str:
    """Escapes a character for a Java properties file: beyond ASCII as UTF-16."""
    if character.isascii():
        return character
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def _memory() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(LEAST_MEMORY, min(MOST_MEMORY, machine // SHARE))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for child processes, and restores them at the end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
