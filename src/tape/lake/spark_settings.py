"""Spark's own settings: from spark-submit, from environment variables, and from files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

MASTER: Final = "spark.master"
REMOTE: Final = "spark.remote"
GATEWAY: Final = "PYSPARK_GATEWAY_PORT"  # set by spark-submit, which has started the JVM and this Python
ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
OPTIONS: Final = {
    "--master": MASTER,
    "--remote": REMOTE,
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}
CONF: Final = ("--conf", "-c")
FILE: Final = "--properties-file"


def declared(environment: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings by name, as far as a process without a JVM can read them; arguments win over files."""
    arguments = list(_arguments(environment.get(ARGUMENTS, "")))
    files = [Path(value) for name, value in arguments if name == FILE] or _default_files(environment)
    found: dict[str, str] = {}
    for file in files:
        found.update(_of_file(file))
    found.update(pair for argument in arguments for pair in _settings(*argument))
    if environment.get("SPARK_REMOTE"):
        found[REMOTE] = environment["SPARK_REMOTE"]
    return found


def is_submitted(environment: Mapping[str, str]) -> bool:
    """Whether spark-submit has started this program."""
    return bool(environment.get(GATEWAY))


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    """The options of a command line with their values, `--name value` and `--name=value` alike."""
    words = shlex.split(text)
    for word, following in zip(words, [*words, ""][1:], strict=True):
        name, sign, value = word.partition("=")
        if word.startswith("-"):
            yield (name, value) if sign and word.startswith("--") else (word, following)


def _settings(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name in OPTIONS:
        yield OPTIONS[name], value
    elif name in CONF:
        key, _, text = value.partition("=")
        yield key, text


def _default_files(environment: Mapping[str, str]) -> list[Path]:
    if environment.get("SPARK_CONF_DIR"):
        return [Path(environment["SPARK_CONF_DIR"]) / "spark-defaults.conf"]
    home = environment.get("SPARK_HOME")
    return [Path(home) / "conf" / "spark-defaults.conf"] if home else []


def _of_file(path: Path) -> Iterator[tuple[str, str]]:
    """Names and values of a properties file, separated by blanks, `=` or `:`."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in map(str.strip, text.splitlines()):
        name = line.replace("=", " ").replace(":", " ").split(maxsplit=1)[0] if line else ""
        if name and not name.startswith(("#", "!")):
            yield name, line[len(name) :].lstrip(" \t=:")
