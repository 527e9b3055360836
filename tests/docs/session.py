"""A reader who types what a page shows, in a folder of their own, and compares what comes with what it says."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.docs.blocks import Block, Part, Serve, Spark
from tests.docs.browsing import listening
from tests.docs.inside import Inside
from tests.patience import PATIENCE_S

PROGRAMS = Path(sys.executable).parent
RPC = re.compile(r"tape://127\.0\.0\.1:\d+")
PORT = re.compile(r"(?:localhost|127\.0\.0\.1):7880")
SERVES = re.compile(r"tape serves at http://(\S+?:\d+)")
ENDLESS = re.compile(r"^curl -N|^tape (tail (?!.*--no-follow)|value watch)")
WATCHED = ("--signal=INT", "4")  # long enough to start and to say something, wherever it runs
LONG = re.compile(r"^tape serve\b")
ID = re.compile(r"\b(fork|run)-[0-9a-f]{6,}")
RUNNER = """
import ast, asyncio, inspect, sys
code = compile(open(sys.argv[1]).read(), "the page", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {"__name__": "__main__"})
asyncio.run(result) if inspect.iscoroutine(result) else None
"""


class Session:
    """What is there while a page is read: a folder, maybe a server, a browser, Spark, and the id of the last fork."""

    def __init__(self, folder: Path, server: Callable[[str], object], programs: Path = PROGRAMS) -> None:
        self._folder = folder
        self._server = server
        self._inside: Inside | None = None
        self._left = ExitStack()
        self._said: Callable[[int], str] | None = None
        self._address = "127.0.0.1:9"
        self._ids: dict[str, str] = {}
        self._servers: list[subprocess.Popen[str]] = []
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}
        self._programs = programs
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        ports = {"TAPE_HTTP": "127.0.0.1:0", "TAPE_GRPC": "127.0.0.1:0"}
        ours = {"TAPE_TEST_DOCS": str(ROOT / "docs"), "PATH": path, "PYTHONPATH": str(folder), "NO_COLOR": "1"}
        self._environment = {**kept, **ports, **ours}

    def do(self, part: Part) -> None:
        match part:
            case Serve():
                self._serve("tape serve")
            case Spark():
                self._server("spark")
                self._inside = Inside(self._folder, self._environment)
            case Block(file=str(name)):
                (self._folder / name).write_text(part.code)
            case Block(language="python"):
                came = self._python(f"{part.before}\n{part.code}")
                self._said = lambda _: came
            case Block(language="javascript"):
                self._javascript(f"{part.before}\n{part.code}")
            case Block() if part.code.startswith("$ "):
                self._console(part)
            case Block():
                self._compare(part.code)

    def end(self) -> None:
        self._left.close()
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(PATIENCE_S)
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()

    def _compare(self, wanted: str) -> None:
        assert self._said is not None, f"nothing has run that could have said\n{wanted}"
        came = self._said(len(wanted.splitlines()))
        assert alike(wanted, came), f"the page says\n{wanted}\nand this came\n{came}"

    def _python(self, code: str) -> str:
        if self._inside is not None:
            return self._inside.python(code)
        script = self._folder / ".block.py"
        script.write_text(self._here(code))
        return self._ran([str(self._programs / "python"), "-c", RUNNER, str(script)])

    def _javascript(self, code: str) -> None:
        chromium = getattr(self._server("browser"), "url")  # noqa: B009 - whichever server it is
        self._said = self._left.enter_context(listening(chromium, self._address, code)).lines

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
        if self._inside is not None and command.startswith("tape "):
            return self._noted(self._inside.command(command))
        if LONG.match(command):
            return self._serve(command)
        if ENDLESS.match(command):
            return self._ran(["timeout", *WATCHED, "bash", "-c", command], endings=(0, 124, 130))
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
        return self._noted(said)

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
        return self._noted(ended.stdout)

    def _noted(self, came: str) -> str:
        """What came, as the page would have it, with its ids kept in mind."""
        for found in ID.finditer(came):
            if not self._ids.get(found[1], "").startswith(found[0]):  # a narrow table shows the beginning of an id
                self._ids[found[1]] = found[0]
        return RPC.sub("tape://127.0.0.1:7878", came.replace(self._address, "127.0.0.1:7880"))

    def _here(self, text: str) -> str:
        """The text with this session's server and ids in place of those of the page."""
        for kind, found in self._ids.items():
            text = text.replace(f"{kind}-…", found)
        return PORT.sub(self._address, text)


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, without its comment, and what is said to come of it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, rest = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield re.sub(r"\s+# .*$", "", command), rest


def alike(wanted: str, came: str) -> bool:
    """Whether they are the same where the page does not leave something out with an ellipsis."""
    pattern = ".*?".join(re.escape(piece) for piece in re.split(r"…\n?", wanted.rstrip()))
    return re.fullmatch(pattern + r"\s*", came, re.DOTALL) is not None
