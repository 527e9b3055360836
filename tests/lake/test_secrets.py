"""A password reaches the database and nothing else: no plan, no page, no log, no error."""

import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tape.core.errors import UsageError
from tape.lake.store_option import option_for, resolve
from tests.lake.journals import fill, numbered, read, source
from tests.lake.stream_copy import copy_stream

PASSWORD = "Xyzzy-plugh-29%2F"


@pytest.fixture
def secret_url(postgres_url: str) -> str:
    """The server trusts everybody, so any password will do."""
    return with_password(postgres_url)


def with_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{parts.username}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


def test_a_password_is_in_no_plan_page_or_log(
    spark: SparkSession,
    spark_folder: Path,
    secret_url: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fill(secret_url, numbered(40))
    store = option_for(secret_url)

    frame = source(spark, store).where("run_id = 'run1' AND seq > 2")
    frame.explain("extended")
    frame.explain("formatted")
    assert frame.count() > 0
    copy_stream(spark, store, option_for(with_password(f"{secret_url}?application_name=x")), tmp_path, rows=20)

    assert len(read(secret_url)) == 80
    printed = capfd.readouterr().out
    assert "tape" in printed and "Xyzzy" not in printed
    assert [path for path in written(spark_folder, tmp_path) if has_password(path.read_bytes())] == []


def written(*folders: Path) -> Iterator[Path]:
    """Every file of Spark's: its log, what its pages are made of, and checkpoints."""
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any("tape" in path.read_text(errors="replace") for path in found if "events" in path.parts)
    assert any(" INFO " in path.read_text(errors="replace") for path in found if path.name == "spark.log")
    return iter(found)


def has_password(text: bytes) -> bool:
    return b"Xyzzy" in text


def test_the_error_of_a_task_has_no_password(spark: SparkSession, secret_url: str) -> None:
    port = urlsplit(secret_url).port
    nobody = secret_url.replace(f":{port}/", ":1/")

    with pytest.raises(PySparkException, match="Postgres did not answer") as failed:
        source(spark, option_for(nobody)).collect()

    assert "Xyzzy" not in str(failed.value)


@pytest.mark.parametrize("tail", ["?password=Xyzzy-1", "?sslmode=disable&password=Xyzzy-1"])
def test_a_password_in_an_option_is_refused_and_not_quoted(spark: SparkSession, postgres_url: str, tail: str) -> None:
    with pytest.raises(PySparkException, match="a password in an option appears in Spark's plans") as failed:
        source(spark, postgres_url + tail)

    assert "Xyzzy" not in str(failed.value)


def test_a_url_that_no_driver_understands_is_quoted_without_its_password(spark: SparkSession, url: str) -> None:
    broken = f"postgresql://u:{PASSWORD}@host:port:port/x?y"

    with pytest.raises(PySparkException) as failed:
        source(spark, option_for(broken)).collect()

    assert "Xyzzy" not in str(failed.value)


def test_a_url_without_a_password_is_its_own_option(postgres_url: str, url: str) -> None:
    assert (option_for(postgres_url), option_for(url)) == (postgres_url, url)


def test_a_url_with_a_password_is_in_a_file_of_its_owner(secret_url: str) -> None:
    option = option_for(secret_url)

    mode = Path(option.removeprefix("file:")).stat().st_mode
    assert (stat.S_IMODE(mode), resolve(option, {})) == (0o600, secret_url)


def test_a_reference_may_name_a_variable() -> None:
    assert resolve("env:LEDGER", {"LEDGER": "postgresql://u:p@h/d"}) == "postgresql://u:p@h/d"


def test_without_an_option_it_is_the_store_of_the_settings() -> None:
    assert resolve(None, {"TAPE_STORE": "sqlite:///x.db"}) == "sqlite:///x.db"


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UsageError, match="'LEDGER', which is not set"):
        resolve("env:LEDGER", {})
