"""Sessions: the source works on every kind of master, and nothing else is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tape.core.errors import UsageError
from tape.lake.java import find_java, launch_home
from tape.lake.session import check_master, chosen_master, configuration
from tape.lake.spark_settings import declared
from tests.lake.journals import fill, numbered
from tests.servers.spark import BRIEF, without_spark

COUNT = """
import sys
from pathlib import Path
from tape.lake.session import open_session
master, folder, store, java = sys.argv[1:]
options = {"spark.executor.defaultJavaOptions": java} if master.startswith("local-cluster") else {}
with open_session(master, Path(folder), options) as spark:
    frame = spark.read.format("tape").options(store=store, rowsPerPartition=20).load()
    print(frame.where("run_id = 'run1'").count(), frame.where("subject LIKE '/n3/%'").count())
"""

SUBMITTED = """
import sys
from tape.lake import open_spark
with open_spark() as spark:
    rows = spark.read.format("tape").option("store", sys.argv[1]).load().count()
    print(spark.sparkContext.master, spark.sparkContext.appName, spark.conf.get("spark.sql.session.timeZone"), rows)
"""


def count(master: str, folder: Path, url: str) -> subprocess.CompletedProcess[str]:
    """Counts in a process of its own; keeps its stdout and stderr."""
    command = [sys.executable, "-c", COUNT, master, str(folder), url, BRIEF]
    environment = without_spark(dict(os.environ))
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_executors_in_processes_of_their_own_find_the_source(url: str, tmp_path: Path) -> None:
    fill(url, numbered(90))

    ended = count("local-cluster[1,2,1024]", tmp_path / "spark", url)

    assert (ended.stdout, ended.stderr) == ("30 18\n", "")


@pytest.mark.parametrize(
    "master",
    [
        *("local", "local[*]", "local[4]", "local[4,2]", "local-cluster[2,1,1024]", "spark://h:7077", "sc://h:15002"),
        *("spark://a:7077,b:7077", "yarn", "k8s://https://10.0.0.1:6443", "k8s://api.example:443"),
    ],
)
def test_every_kind_of_master_can_be_named(master: str) -> None:
    assert check_master(master) == master


@pytest.mark.parametrize(
    "master",
    [
        "",
        "yarn2",
        "k8s://",
        "k8s://user:secret@h",
        "local[0x2]",
        "http://h",
        "sc://user:secret@h",
        "local[2] --conf a=b",
    ],
)
def test_another_master_is_refused_naming_those_there_are(master: str) -> None:
    with pytest.raises(UsageError, match=r"TAPE_SPARK_MASTER must be local\[\*\], .* or sc://host:port, not"):
        check_master(master)


def test_a_session_on_this_machine_listens_on_the_loopback_only(tmp_path: Path) -> None:
    settings = configuration("local[2]", tmp_path, tmp_path / "log")

    assert settings["spark.driver.bindAddress"] == settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"


DECLARED = [
    ({"PYSPARK_SUBMIT_ARGS": "--master yarn --deploy-mode client pyspark-shell"}, "yarn"),
    ({"PYSPARK_SUBMIT_ARGS": "--master=k8s://https://h:6443 pyspark-shell"}, "k8s://https://h:6443"),
    ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=spark://h:7077 -c spark.ui.enabled=true pyspark-shell"}, "spark://h:7077"),
    ({"PYSPARK_SUBMIT_ARGS": "--conf 'spark.master=local-cluster[2,1,1024]' pyspark-shell"}, "local-cluster[2,1,1024]"),
    ({"PYSPARK_SUBMIT_ARGS": "--remote sc://h:1 pyspark-shell"}, "sc://h:1"),
    ({"PYSPARK_SUBMIT_ARGS": "--properties-file {folder}/mine.conf pyspark-shell"}, "spark://mine:7077"),
    ({"SPARK_CONF_DIR": "{folder}"}, "spark://default:7077"),
    ({"SPARK_HOME": "{folder}"}, "spark://home:7077"),
    ({"SPARK_CONF_DIR": "{folder}", "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, "yarn"),
    ({"SPARK_REMOTE": "sc://h:15002", "SPARK_CONF_DIR": "{folder}"}, "sc://h:15002"),
    ({"PYSPARK_SUBMIT_ARGS": "--name x pyspark-shell", "SPARK_CONF_DIR": "{folder}/none"}, "local[7]"),
    ({}, "local[7]"),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "master"), DECLARED)
def test_the_master_of_sparks_own_settings_wins(tmp_path: Path, environment: dict[str, str], master: str) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "mine.conf").write_text("# ours\nspark.master=spark://mine:7077\n")
    (tmp_path / "spark-defaults.conf").write_text("spark.eventLog.enabled true\nspark.master    spark://default:7077\n")
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master: spark://home:7077\n")

    known = declared({name: text.format(folder=tmp_path) for name, text in environment.items()})

    assert chosen_master(known, "local[7]") == master


def test_a_program_that_spark_submit_runs_keeps_its_master_and_its_settings(url: str, tmp_path: Path) -> None:
    fill(url, numbered(90))
    script = tmp_path / "count.py"
    script.write_text(SUBMITTED)
    submit = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]", "--name", "mine"]
    java = {
        "JAVA_HOME": str(launch_home(find_java({}, ()), tmp_path)),
        "TAPE_SPARK_MASTER": "local[1]",
        "TAPE_DATA": str(tmp_path),
    }
    environment = {**without_spark(dict(os.environ)), **java, "PYSPARK_PYTHON": sys.executable}

    command = [*submit, "--conf", "spark.sql.session.timeZone=Asia/Tokyo", str(script), url]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert ended.stdout == "local[2] mine Asia/Tokyo 90\n", ended.stderr


def test_a_session_on_a_cluster_can_be_reached_from_it(tmp_path: Path) -> None:
    assert "spark.driver.host" not in configuration("spark://h:7077", tmp_path, tmp_path / "log")
