"""Settings from the environment and the file of TAPE_CONFIG, read once and validated."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tape.core.app import app_of, main_module
from tape.core.errors import UsageError, quoted
from tape.core.folder import local_folder
from tape.core.ids import ID_IN_WORDS, is_id
from tape.service_links import is_service_link

PREFIX: Final = "TAPE_"
TEST_PREFIX: Final = "TAPE_TEST_"
NAMES: Final = frozenset(
    "allowed_origins app broker_backend config connections data generation grace grpc http lake listen_url outbox_url "
    "spark_master store unsafe_durability url".split()
)
BACKENDS: Final = ("inprocess", "redis", "journal")
LOCAL_REDIS: Final = "localhost:6379/0"
OLD_NAMES: Final = {
    "ARENA_BROKER_BACKEND": "TAPE_BROKER_BACKEND",
    "ARENA_LOGS_ROOT": "TAPE_DATA",
    "ARENA_WEB_CORS_ORIGINS": "TAPE_ALLOWED_ORIGINS",
    "SPECTRAL_GENERATION": "TAPE_GENERATION",
}
HTTP: Final = "127.0.0.1:7880"
GRPC: Final = "127.0.0.1:7878"
URL: Final = "tape://localhost:7878"
SPARK_MASTER: Final = "local[*]"
GRACE: Final = timedelta(seconds=25)  # Kubernetes kills after 30 s
LONGEST_GRACE: Final = timedelta(days=1)
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("", "0", "false", "no", "off")
_is_origin = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the data is; URLs choose the backends.

    `node` is the default of clients: the server or else the store that was named, or else `url`.
    """

    data: Path
    store: str
    listen_url: str | None
    unsafe_durability: bool
    broker_backend: str = BACKENDS[0]
    redis_url: str = f"redis://{LOCAL_REDIS}"
    http: str = HTTP
    grpc: str = GRPC
    url: str = URL
    node: str = URL
    allowed_origins: tuple[str, ...] = ()
    lake: Path | None = None
    spark_master: str = SPARK_MASTER
    generation: int = 0
    grace: timedelta = GRACE
    outbox: str | None = None
    app: str = field(default_factory=lambda: app_of(main_module()))
    connections: Mapping[str, Mapping[str, object]] = field(default_factory=dict, repr=False)

    @property
    def outbox_url(self) -> str:
        return self.outbox or self.store

    @property
    def lake_folder(self) -> Path:
        return self.lake or self.data / "lake"

    @property
    def is_default_store(self) -> bool:
        """Whether the store is the one that nobody has named."""
        return self.store == _default_store(self.data)

    @classmethod
    def read(cls, environment: Mapping[str, str], main: str | None = None) -> "Settings":
        """Reads an environment and the file that TAPE_CONFIG names; the environment wins. Unknown names are refused.

        Without TAPE_APP the app is the top-level package of `main`, or else of the module that this process runs.
        """
        _refuse_old_names(environment)
        variables = _of_environment(environment)
        given = {**_of_file(variables.get("config")), **variables}
        data = local_folder(str(given.get("data") or ".tape"), "TAPE_DATA")
        return cls(
            data=data,
            store=str(given.get("store") or _default_store(data)),
            listen_url=str(given["listen_url"]) if given.get("listen_url") else None,
            unsafe_durability=_flag("unsafe_durability", given.get("unsafe_durability", "")),
            broker_backend=_backend(given.get("broker_backend") or BACKENDS[0]),
            redis_url=_redis_url(environment),
            http=str(given.get("http") or HTTP),
            grpc=str(given.get("grpc") or GRPC),
            url=str(given.get("url") or URL),
            node=str(given.get("url") or given.get("store") or URL),
            allowed_origins=_origins(given.get("allowed_origins") or ""),
            lake=local_folder(str(given["lake"]), "TAPE_LAKE") if given.get("lake") else None,
            spark_master=str(given.get("spark_master") or SPARK_MASTER),
            generation=_generation(given.get("generation") or 0),
            grace=_grace(given.get("grace") or GRACE.total_seconds()),
            outbox=str(given["outbox_url"]) if given.get("outbox_url") else None,
            app=_app(given.get("app") or app_of(main or main_module())),
            connections=_connections(given.get("connections") or {}),
        )


def _refuse_old_names(environment: Mapping[str, str]) -> None:
    for old in sorted(environment.keys() & OLD_NAMES.keys()):
        raise UsageError(f"{old} is not read any more; use {OLD_NAMES[old]}")


def _default_store(data: Path) -> str:
    return f"sqlite:///{quote(str(data / 'tape.db'))}"


def _backend(name: object) -> str:
    if name not in BACKENDS:
        raise UsageError(
            f"TAPE_BROKER_BACKEND must be {', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}, not {quoted(name)}"
        )
    return str(name)


def _redis_url(environment: Mapping[str, str]) -> str:
    """REDIS_URL, or the local server with REDIS_PASSWORD."""
    password = environment.get("REDIS_PASSWORD")
    local = f"redis://:{quote(password, safe='')}@{LOCAL_REDIS}" if password else f"redis://{LOCAL_REDIS}"
    return environment.get("REDIS_URL") or local


def _app(value: object) -> str:
    name = str(value)
    if not is_id(name):
        raise UsageError(f"TAPE_APP is the name of an app, {ID_IN_WORDS}, not {quoted(name)}")
    return name


def _generation(value: object) -> int:
    if not str(value).isdecimal() or not 0 <= int(str(value)) < 2**63:
        raise UsageError(f"TAPE_GENERATION is a whole number from 0 on, not {quoted(value)}")
    return int(str(value))


def _grace(value: object) -> timedelta:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = -1
    if not 0 < seconds <= LONGEST_GRACE.total_seconds():
        raise UsageError(f"TAPE_GRACE is seconds, up to {LONGEST_GRACE.total_seconds():,.0f}, not {quoted(value)}")
    return timedelta(seconds=seconds)


def _connections(value: object) -> Mapping[str, Mapping[str, object]]:
    """The tables of bridge peers by name; they hold secrets, so they come from a file only."""
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise UsageError("connections are tables in the file of TAPE_CONFIG: [connections.nats] and so on")
    return value


def _origins(value: object) -> tuple[str, ...]:
    """Origins of other pages that may call the API; `*` and `null` are refused, because they mean anyone."""
    names = [str(name) for name in value] if isinstance(value, list) else str(value).replace(",", " ").split()
    for name in names:
        if not _is_origin(name):
            raise UsageError(f"TAPE_ALLOWED_ORIGINS names origins like http://localhost:5173, not {quoted(name)}")
    return tuple(names)


def _of_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Our variables, without those of a Kubernetes Service whose name begins with TAPE."""
    ours = {name: text for name, text in environment.items() if name.startswith(PREFIX)}
    given = {
        name.removeprefix(PREFIX).lower(): text
        for name, text in ours.items()
        if not name.startswith(TEST_PREFIX) and not is_service_link(name, text)
    }
    if unknown := given.keys() - NAMES:
        raise UsageError(f"unknown setting {PREFIX}{min(unknown).upper()}; there are {_listed(NAMES)}")
    return given


def _of_file(path: str | None) -> Mapping[str, object]:
    if not path:
        return {}
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"TAPE_CONFIG {quoted(path)} cannot be read: {error}") from error
    if unknown := given.keys() - NAMES:
        raise UsageError(f"unknown setting {quoted(min(unknown))} in {quoted(path)}; there are {_listed(NAMES)}")
    return given


def _flag(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in _TRUE + _FALSE:
        raise UsageError(f"{PREFIX}{name.upper()} must be 1 or 0, not {quoted(value)}")
    return text in _TRUE


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(PREFIX + name.upper() for name in names - {"connections"}))
