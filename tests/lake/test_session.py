"""Sessions: the same source on every kind of master, and nothing on the terminal that is not ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tape.core.errors import UsageError
from tape.lake.java import find_java
from tape.lake.session import check_master, configuration, open_session
from tests.lake.connect import ConnectServer
from tests.lake.journals import fill, numbered
from tests.servers.spark import without_spark

COUNT = """
import sys
from pathlib import Path
from tape.lake.session import open_session
master, folder, store = sys.argv[1:]
with open_session(master, Path(folder)) as spark:
    frame = spark.read.format("tape").options(store=store, rowsPerPartition=20).load()
    print(frame.where("run_id = 'run1'").count(), frame.where("subject LIKE '/n3/%'").count())
"""


def count(master: str, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """What a process of its own finds, and whatever it says besides."""
    command = [sys.executable, "-c", COUNT, master, str(folder), url]
    environment = without_spark(dict(os.environ))
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_executors_in_processes_of_their_own_find_the_source(url: str, tmp_path: Path) -> None:
    fill(url, numbered(90))

    ended = count("local-cluster[2,1,1024]", tmp_path / "spark", url)

    assert (ended.stdout, ended.stderr) == ("30 18\n", "")


def test_a_connect_server_on_the_packaged_java_serves_the_source(url: str, tmp_path: Path) -> None:
    fill(url, numbered(90))

    with ConnectServer(tmp_path, find_java({}, ())) as server:
        ended = count(server.url, tmp_path / "unused", url)

    assert (ended.stdout, ended.stderr) == ("30 18\n", "")


def test_a_session_that_is_there_is_shared_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    with open_session("local[2]", tmp_path) as session:
        assert session is spark

    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[4]", "local[4,2]", "local-cluster[2,1,1024]", "spark://h:7077", "sc://h:15002"],
)
def test_every_kind_of_master_can_be_named(master: str) -> None:
    assert check_master(master) == master


@pytest.mark.parametrize("master", ["", "yarn", "local[0x2]", "http://h", "sc://user:secret@h", "local[2] --conf a=b"])
def test_another_master_is_refused_naming_those_there_are(master: str) -> None:
    with pytest.raises(UsageError, match=r"TAPE_SPARK_MASTER must be local\[\*\], .* or sc://host:port, not"):
        check_master(master)


def test_a_session_on_this_machine_listens_on_the_loopback_only(tmp_path: Path) -> None:
    said = configuration("local[2]", tmp_path, tmp_path / "log")

    assert said["spark.driver.bindAddress"] == said["spark.driver.host"] == "127.0.0.1"
    assert said["spark.ui.enabled"] == "false"


def test_a_session_on_a_cluster_can_be_reached_from_it(tmp_path: Path) -> None:
    assert "spark.driver.host" not in configuration("spark://h:7077", tmp_path, tmp_path / "log")
