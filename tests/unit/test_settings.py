"""Settings: read once, checked, and nothing misspelt goes unnoticed."""

from pathlib import Path

import pytest

from tape.core.errors import UsageError
from tape.service_links import suffixes
from tape.settings import NAMES, PREFIX, Settings


def test_without_a_word_tape_lives_in_the_current_folder() -> None:
    settings = Settings.read({"HOME": "/nowhere"})

    here = "sqlite:///.tape/tape.db"
    assert settings == Settings(data=Path(".tape"), store=here, listen_url=None, unsafe_durability=False)


def test_a_data_folder_holds_the_store_whatever_its_name() -> None:
    assert Settings.read({"TAPE_DATA": "/a b/ü?"}).store == "sqlite:////a%20b/%C3%BC%3F/tape.db"


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(UsageError, match="TAPE_STROE"):
        Settings.read({"TAPE_STROE": "memory://"})


def service_links(name: str, host: str, port: int, protocol: str = "tcp", port_name: str = "HTTP") -> dict[str, str]:
    """What Kubernetes puts into every container beside a Service."""
    address = f"{protocol}://[{host}]:{port}" if ":" in host else f"{protocol}://{host}:{port}"
    link = f"{name}_PORT_{port}_{protocol.upper()}"
    return {
        f"{name}_SERVICE_HOST": host,
        f"{name}_SERVICE_PORT": str(port),
        f"{name}_SERVICE_PORT_{port_name}": str(port),
        f"{name}_PORT": address,
        link: address,
        f"{link}_PROTO": protocol,
        f"{link}_PORT": str(port),
        f"{link}_ADDR": host,
    }


@pytest.mark.parametrize("name", ["TAPE", "TAPE_HTTP", "TAPE_STORE", "TAPE_SERVICE_PORT", "TAPE_PORT_80_TCP"])
@pytest.mark.parametrize(("host", "protocol"), [("10.96.0.17", "tcp"), ("fd00:10:96::a", "udp"), ("10.0.0.1", "sctp")])
def test_the_links_of_a_kubernetes_service_are_no_settings(name: str, host: str, protocol: str) -> None:
    links = service_links(name, host, 7880, protocol, "GRPC_WEB")

    assert Settings.read(links) == Settings.read({})
    assert Settings.read({**links, "TAPE_HTTP": "127.0.0.1:1"}).http == "127.0.0.1:1"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("TAPE_PORT", "7880"),
        ("TAPE_PORT", "http://10.0.0.1:80"),
        ("TAPE_PORT", "tcp://10.0.0.1"),
        ("TAPE_PORT", "tcp://10.0.0.1:80 "),
        ("TAPE_SERVICE_HOST", "tape.example"),
        ("TAPE_SERVICE_PORT", "http"),
        ("TAPE_SERVICE_PORT", "70000"),
        ("TAPE_HTTP_PORT", "8080"),
        ("TAPE_PORT_80_TCP", "tcp://10.0.0.1:81"),
        ("TAPE_PORT_80_TCP_PORT", "81"),
        ("TAPE_PORT_80_TCP_PROTO", "udp"),
        ("TAPE_PORT_80_TCP_ADDR", "10.0.0.1:80"),
        ("TAPE_PORT_80_TCP_NAME", "tape"),
        ("TAPE_SERVICE", "tape"),
        ("TAPE_SERVICE_HOSTS", "10.0.0.1"),
        ("TAPE_service_host", "10.0.0.1"),
    ],
)
def test_what_only_resembles_a_service_link_is_an_error(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"unknown setting {name.upper()}"):
        Settings.read({name: text})


def test_no_setting_has_the_name_of_a_service_link() -> None:
    assert [name for name in NAMES if suffixes(PREFIX + name.upper())] == []


def test_names_of_tests_are_let_be() -> None:
    assert Settings.read({"TAPE_TEST_POSTGRES_URL": "x"}) == Settings.read({})


def test_the_outbox_lies_with_the_journal_unless_a_setting_says_where() -> None:
    assert Settings.read({"TAPE_STORE": "x"}).outbox_url == "x"
    assert Settings.read({"TAPE_STORE": "x", "TAPE_OUTBOX_URL": "y"}).outbox_url == "y"


@pytest.mark.parametrize("text", ["-1", "one", "9223372036854775808"])
def test_a_generation_is_a_number(text: str) -> None:
    assert Settings.read({"TAPE_GENERATION": "3"}).generation == 3
    with pytest.raises(UsageError, match="TAPE_GENERATION"):
        Settings.read({"TAPE_GENERATION": text})


@pytest.mark.parametrize("text", ["my shop", ".shop", "ä", "x" * 129])
def test_an_app_has_a_name(text: str) -> None:
    assert Settings.read({"TAPE_APP": "shop"}).app == "shop"
    with pytest.raises(UsageError, match="TAPE_APP"):
        Settings.read({"TAPE_APP": text})


def test_the_lake_lies_with_the_data_unless_a_setting_says_where() -> None:
    assert Settings.read({"TAPE_DATA": "here"}).lake_folder == Path("here/lake")
    assert Settings.read({"TAPE_DATA": "here", "TAPE_LAKE": "there"}).lake_folder == Path("there")


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_flag_is_one_or_zero(text: str, expected: bool) -> None:
    assert Settings.read({"TAPE_UNSAFE_DURABILITY": text}).unsafe_durability is expected


def test_another_word_for_a_flag_is_an_error() -> None:
    with pytest.raises(UsageError, match="must be 1 or 0, not 'maybe'"):
        Settings.read({"TAPE_UNSAFE_DURABILITY": "maybe"})


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tape.toml"
    file.write_text('store = "memory://"\ndata = "elsewhere"\nunsafe_durability = true\n')

    settings = Settings.read({"TAPE_CONFIG": str(file), "TAPE_DATA": "here"})

    assert settings == Settings(
        data=Path("here"), store="memory://", node="memory://", listen_url=None, unsafe_durability=True
    )


@pytest.mark.parametrize("text", ["stroe = 1", "store = ", ""])
def test_a_file_that_is_wrong_or_missing_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tape.toml"
    if text:
        file.write_text(text)

    with pytest.raises(UsageError):
        Settings.read({"TAPE_CONFIG": str(file)})


@pytest.mark.parametrize("backend", ["inprocess", "redis", "journal"])
def test_a_broker_is_chosen_by_name(backend: str) -> None:
    assert Settings.read({"TAPE_BROKER_BACKEND": backend}).broker_backend == backend


def test_another_broker_is_an_error_and_not_the_usual_one() -> None:
    with pytest.raises(UsageError, match="must be inprocess, redis or journal, not 'kafka'"):
        Settings.read({"TAPE_BROKER_BACKEND": "kafka"})


@pytest.mark.parametrize(
    ("environment", "node"),
    [
        ({}, "tape://localhost:7878"),
        ({"TAPE_DATA": "here"}, "tape://localhost:7878"),
        ({"TAPE_STORE": "memory://"}, "memory://"),
        ({"TAPE_STORE": "memory://", "TAPE_URL": "tape://localhost:1"}, "tape://localhost:1"),
    ],
)
def test_clients_go_to_the_server_or_else_the_store_that_was_named(environment: dict[str, str], node: str) -> None:
    assert Settings.read(environment).node == node
    assert Settings.read(environment).url == environment.get("TAPE_URL", "tape://localhost:7878")


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"REDIS_URL": "redis://cache:1/2", "REDIS_PASSWORD": "x"}, "redis://cache:1/2"),
        ({"REDIS_PASSWORD": "p@ss/word"}, "redis://:p%40ss%2Fword@localhost:6379/0"),
        ({}, "redis://localhost:6379/0"),
    ],
)
def test_redis_is_where_its_url_says_or_here_with_its_password(environment: dict[str, str], url: str) -> None:
    assert Settings.read(environment).redis_url == url


@pytest.mark.parametrize(
    ("old", "new"),
    [("ARENA_BROKER_BACKEND", "TAPE_BROKER_BACKEND"), ("SPECTRAL_GENERATION", "TAPE_GENERATION")],
)
def test_a_name_of_before_is_refused_and_the_new_one_named(old: str, new: str) -> None:
    with pytest.raises(UsageError, match=f"{old} is not read any more; use {new}"):
        Settings.read({old: "1"})


def test_allowed_origins_are_named_one_by_one() -> None:
    settings = Settings.read({"TAPE_ALLOWED_ORIGINS": "http://localhost:5173, https://console.example"})

    assert settings.allowed_origins == ("http://localhost:5173", "https://console.example")


@pytest.mark.parametrize("text", ["*", "null", "localhost:5173", "http://a/path", "ftp://a", "http://A"])
def test_what_is_not_an_origin_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="TAPE_ALLOWED_ORIGINS"):
        Settings.read({"TAPE_ALLOWED_ORIGINS": text})
