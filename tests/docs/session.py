"""A reader who types what a page shows, in a folder of their own, and compares what comes with what it says."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.docs.blocks import Block, Serve
from tests.house.tree import ROOT
from tests.patience import PATIENCE_S

RPC = re.compile(r"tape://127\.0\.0\.1:\d+")
PORT = re.compile(r"(?:localhost|127\.0\.0\.1):7880")
SERVES = re.compile(r"tape serves at http://(\S+?:\d+)")
ENDLESS = re.compile(r"^curl -N|^tape (tail (?!.*--no-follow)|value watch)")
LONG = re.compile(r"^tape serve\b")
ID = re.compile(r"\b(fork|run)-[0-9a-f]{6,}")
RUNNER = """
import ast, asyncio, inspect, sys
code = compile(open(sys.argv[1]).read(), "the page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
asyncio.run(result) if inspect.iscoroutine(result) else None
"""


class Session:
    """What is there while a page is read: a folder, maybe a server, and the id of the last fork."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._address = "127.0.0.1:9"
        self._ids: dict[str, str] = {}
        self._servers: list[subprocess.Popen[str]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        ports = {"TAPE_HTTP": "127.0.0.1:0", "TAPE_GRPC": "127.0.0.1:0"}
        self._environment = {
            **kept,
            **ports,
            "TAPE_TEST_DOCS": str(ROOT / "docs"),
            "PATH": path,
            "PYTHONPATH": str(folder),
            "NO_COLOR": "1",
        }

    def do(self, part: Block | Serve) -> None:
        if isinstance(part, Serve):
            self._serve("tape serve")
        elif part.file is not None:
            (self._folder / part.file).write_text(part.code)
        elif part.language == "python":
            self._said = self._python(f"{part.before}\n{part.code}")
        elif part.code.startswith("$ "):
            self._console(part)
        else:
            assert alike(part.code, self._said), f"the page says\n{part.code}\nand this came\n{self._said}"

    def end(self) -> None:
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(PATIENCE_S)
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()

    def _python(self, code: str) -> str:
        script = self._folder / ".block.py"
        script.write_text(self._here(code))
        return self._ran([sys.executable, "-c", RUNNER, str(script)])

    def _console(self, block: Block) -> None:
        self._ran(["bash", "-ec", self._here(block.before)])
        for command, wanted in commands(block.code):
            came = self._typed(self._here(command))
            assert not wanted or alike(wanted, came), f"$ {command}\n{wanted}\nis what the page says, not\n{came}"

    def _typed(self, command: str) -> str:
        if command.startswith("make "):
            target = command.split()[1]
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(), f"there is no {command}"
            return ""
        if LONG.match(command):
            return self._serve(command)
        if ENDLESS.match(command):
            return self._ran(["timeout", "--signal=INT", "2", "bash", "-c", command], endings=(0, 124, 130))
        return self._ran(["bash", "-c", command])

    def _serve(self, command: str) -> str:
        log = self._folder / ".serve.log"
        with log.open("w") as errors:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._servers.append(server)
        assert server.stdout is not None
        said = server.stdout.readline()
        found = SERVES.search(said)
        assert found, f"{command} said {said!r} and {log.read_text()!r}"
        self._address = found[1]
        return self._there(said)

    def _ran(self, command: list[str], endings: tuple[int, ...] = (0,)) -> str:
        ended = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode in endings, (
            f"{command[-1]}\nended with {ended.returncode}\n{ended.stdout}{ended.stderr}"
        )
        for found in ID.finditer(ended.stdout):
            if not self._ids.get(found[1], "").startswith(found[0]):  # a narrow table shows the beginning of an id
                self._ids[found[1]] = found[0]
        return self._there(ended.stdout)

    def _here(self, text: str) -> str:
        """The text with this session's server and ids in place of those of the page."""
        for kind, found in self._ids.items():
            text = text.replace(f"{kind}-…", found)
        return PORT.sub(self._address, text)

    def _there(self, text: str) -> str:
        """What came, as the page would have it."""
        return RPC.sub("tape://127.0.0.1:7878", text.replace(self._address, "127.0.0.1:7880"))


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, without its comment, and what is said to come of it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, rest = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield re.sub(r"\s+# .*$", "", command), rest


def alike(wanted: str, came: str) -> bool:
    """Whether they are the same where the page does not leave something out with an ellipsis."""
    pattern = ".*?".join(re.escape(piece) for piece in re.split(r"…\n?", wanted.rstrip()))
    return re.fullmatch(pattern + r"\s*", came, re.DOTALL) is not None
