"""A Spark Connect server of our own, from the package."""

import os
import socket
import sys
from pathlib import Path
from types import TracebackType

import anyio
import psutil
import pyspark

from tape.lake.java import Java, launch_home
from tape.lake.session import configuration
from tests.patience import PATIENCE_S
from tests.servers.spark import without_spark

MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer:
    """It listens on a port of the loopback from the moment it is entered, and is gone when it is left."""

    def __init__(self, folder: Path, java: Java) -> None:
        self._folder = folder
        self._java = java
        self._log = folder / "connect.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"sc://127.0.0.1:{self._port}"

    def __enter__(self) -> "ConnectServer":
        with self._log.open("wb") as log:
            self._process = psutil.Popen(self._command(), env=self._environment(), stdout=log, stderr=log)
        anyio.run(self._answers)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        family = [*self._process.children(recursive=True), self._process]
        for process in family:
            process.kill()
        psutil.wait_procs(family)

    def _command(self) -> list[str]:
        said = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(self._port),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
        options = [word for name, value in said.items() for word in ("--conf", f"{name}={value}")]
        program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        return [str(program), "--master", "local[2]", *options, "--class", MAIN, "spark-internal"]

    def _environment(self) -> dict[str, str]:
        said = without_spark(dict(os.environ))
        python_path = configuration("local", self._folder, self._folder)["spark.executorEnv.PYTHONPATH"]
        home = launch_home(self._java, self._folder)
        return said | {"JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": python_path}

    async def _answers(self) -> None:
        with anyio.fail_after(PATIENCE_S):
            while True:
                if self._process.poll() is not None:
                    raise RuntimeError(f"the Connect server ended: {self._log.read_text()[-2000:]}")
                try:
                    await (await anyio.connect_tcp("127.0.0.1", self._port)).aclose()
                except OSError:
                    await anyio.sleep(0.1)
                else:
                    return
