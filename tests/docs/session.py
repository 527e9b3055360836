"""A reader who types what a page shows, in an own folder, and compares the output with the page."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Timer

from tests.architecture.tree import ROOT
from tests.deadlines import DEADLINE_S
from tests.docs.blocks import SPARK, Block
from tests.docs.browsing import running
from tests.docs.in_process import InProcess

PROGRAMS = Path(sys.executable).parent
CHECKOUT = ("bench", "docs", "examples")  # folders of a checkout that commands of a page name
GRPC = re.compile(r"tape://127\.0\.0\.1:\d+")
HTTP = re.compile(r"(?:localhost|127\.0\.0\.1):7880")
READY = re.compile(r"tape serves at http://(\S+?:\d+)")
SERVER = re.compile(r"^tape serve\b")
ENDLESS = re.compile(r"^curl -N|^tape (tail (?!.*--no-follow)|value watch)")
ID = re.compile(r"\b(fork|run)-[0-9a-f]{6,}")

Output = Callable[[int], str]  # the output so far, once it has so many lines


class Session:
    """A folder with a checkout's files, and what a page started in it: a server, a browser, Spark.

    `fixture` gives the test's `browser` and `spark`. A page shows the id that a command has printed as `fork-…` or
    `run-…`; in later commands the last printed id takes that place.
    """

    def __init__(self, folder: Path, fixture: Callable[[str], object], programs: Path = PROGRAMS) -> None:
        self._folder = folder
        self._fixture = fixture
        self._programs = programs
        self._environment = _environment(folder, programs)
        self._in_process: InProcess | None = None
        self._scripts = ExitStack()
        self._output: Output | None = None
        self._address = "127.0.0.1:9"
        self._ids: dict[str, str] = {}
        self._servers: list[subprocess.Popen[str]] = []
        for name in CHECKOUT:
            (folder / name).symlink_to(ROOT / name)

    def follow(self, page: Sequence[Block]) -> None:
        """Does what the page shows, from top to bottom."""
        if any(SPARK.search(block.code) for block in page):
            self._fixture("spark")
            self._in_process = InProcess(self._folder, self._environment)
        for block in page:
            self.do(block)

    def do(self, block: Block) -> None:
        match block:
            case Block(file=str(name)):
                (self._folder / name).write_text(block.code)
            case Block(language="python"):
                printed = self._python(block.code)
                self._output = lambda _: printed
            case Block(language="javascript"):
                self._javascript(block.code)
            case Block() if block.code.startswith("$ "):
                self._console(block.code)
            case Block():
                self._compare(block.code)

    def end(self) -> None:
        self._scripts.close()
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                server.wait(DEADLINE_S)
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()

    def _compare(self, shown: str) -> None:
        assert self._output is not None, f"no program ran that could have printed\n{shown}"
        printed = self._output(len(shown.splitlines()))
        assert matches(shown, printed), f"the page shows\n{shown}\nbut the program printed\n{printed}"

    def _python(self, code: str) -> str:
        if self._in_process is not None:
            return self._in_process.python(code)
        script = self._folder / "example.py"
        script.write_text(self._localized(code))
        return self._run([str(self._programs / "python"), str(script)])

    def _javascript(self, code: str) -> None:
        chromium = getattr(self._fixture("browser"), "url")  # noqa: B009 - the fixture's type is not known here
        self._output = self._scripts.enter_context(running(chromium, self._address, code)).lines

    def _console(self, code: str) -> None:
        for command, shown in commands(code):
            printed = self._type(self._localized(command), shown)
            assert not shown or matches(shown, printed), f"$ {command}\nthe page shows\n{shown}\nbut got\n{printed}"

    def _type(self, command: str, shown: str) -> str:
        if command.startswith("make "):
            target = command.split()[1]
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(), f"the Makefile has no target for {command}"
            return ""
        if self._in_process is not None and command.startswith("tape "):
            return self._noted(self._in_process.command(command))
        if SERVER.match(command):
            return self._serve(command)
        if ENDLESS.match(command):
            return self._watch(command, shown)
        return self._run(["bash", "-c", command])

    def _watch(self, command: str, shown: str) -> str:
        """Interrupts a command that never ends as soon as it has printed what the page shows, or anything."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self._folder, env=self._environment, stdout=subprocess.PIPE
        ) as process:
            stop = Timer(DEADLINE_S, process.kill)
            stop.start()
            assert process.stdout is not None
            printed = b""
            while part := os.read(process.stdout.fileno(), 65_536):
                printed += part
                if matches(shown or "…", self._noted(printed.decode(errors="ignore"))):
                    break
            process.send_signal(signal.SIGINT)
            process.wait()
            stop.cancel()
        return self._noted(printed.decode(errors="ignore"))

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
        line = server.stdout.readline()
        ready = READY.search(line)
        assert ready, f"{command} printed {line!r} and {log.read_text()!r}"
        self._address = ready[1]
        return self._noted(line)

    def _run(self, command: list[str]) -> str:
        ended = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        output = f"{command[-1]}\nended with {ended.returncode}\n{ended.stdout}{ended.stderr}"
        assert ended.returncode == 0, output
        return self._noted(ended.stdout)

    def _noted(self, printed: str) -> str:
        """The output with the page's addresses in place of this session's; remembers the ids in it."""
        for found in ID.finditer(printed):
            if not self._ids.get(found[1], "").startswith(found[0]):  # a narrow table shows the beginning of an id
                self._ids[found[1]] = found[0]
        return GRPC.sub("tape://127.0.0.1:7878", printed.replace(self._address, "127.0.0.1:7880"))

    def _localized(self, text: str) -> str:
        """The text with this session's addresses and ids in place of the page's."""
        for kind, found in self._ids.items():
            text = text.replace(f"{kind}-…", found)
        return HTTP.sub(self._address, text)


def _environment(folder: Path, programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPE_")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    ports = {"TAPE_HTTP": "127.0.0.1:0", "TAPE_GRPC": "127.0.0.1:0"}
    return {**kept, **ports, "PATH": path, "PYTHONPATH": str(folder), "NO_COLOR": "1"}


def commands(code: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block without its comment, and the output that the page shows for it."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, rest = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield re.sub(r"\s+# .*$", "", command), rest


def matches(shown: str, printed: str) -> bool:
    """Whether both are equal where the page does not leave something out with an ellipsis."""
    pattern = ".*?".join(re.escape(piece) for piece in re.split(r"…\n?", shown.rstrip()))
    return re.fullmatch(pattern + r"\s*", printed, re.DOTALL) is not None
