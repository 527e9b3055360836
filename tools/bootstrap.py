"""Builds .venv (or .venv-bench, or .venv-fuzz) from its lock file; needs only Python with venv.

Every make target calls it, so it returns at once when nothing has changed. The stamp is removed first and written
last: an environment without its stamp is one that somebody did not finish, and it is built again from nothing.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Dict, Iterator, List, NamedTuple, NoReturn  # noqa: UP035 - an older Python reads this line too

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
INTERPRETER = str(Path(sys.executable).resolve())  # `python3` may be the very .venv that has to be built again
CERTIFICATE_VARIABLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
NETWORK_TROUBLE = ("connection broken", "ConnectionError", "NewConnectionError", "timed out", "ProxyError", "SSLError")


class Environment(NamedTuple):
    """One virtual environment and what it is made from."""

    folder: Path
    lock: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def packages_stamp(self) -> Path:
        return self.folder / "tape-packages"

    @property
    def project_stamp(self) -> Path:
        return self.folder / "tape-project"


ENVIRONMENTS = {
    "dev": Environment(ROOT / ".venv", ROOT / "requirements" / "dev.lock"),
    "bench": Environment(ROOT / ".venv-bench", ROOT / "requirements" / "bench.lock"),
    "fuzz": Environment(ROOT / ".venv-fuzz", ROOT / "requirements" / "fuzz.lock"),
}


def main(arguments: List[str]) -> None:  # noqa: UP006
    require_python()
    environment = ENVIRONMENTS[arguments[0] if arguments else "dev"]
    if not is_ready(environment):
        with only_one(environment) as lock:
            build(environment, lock)


def require_python() -> None:
    if sys.version_info < OLDEST:
        found = platform.python_version()
        stop(f"Python 3.11 or newer is needed and {sys.executable} is {found}; try `make PYTHON=python3.12`")


def is_ready(environment: Environment) -> bool:
    return has_packages(environment) and is_stamped(environment.project_stamp, project_fingerprint())


def has_packages(environment: Environment) -> bool:
    return environment.python.exists() and is_stamped(environment.packages_stamp, packages_fingerprint(environment))


def is_stamped(stamp: Path, fingerprint: str) -> bool:
    try:
        return stamp.read_text() == fingerprint
    except OSError:
        return False


def packages_fingerprint(environment: Environment) -> str:
    # Scripts in an environment hold its absolute path, so a moved tree needs a new one.
    made_by = f"{sys.version} {platform.machine()} {sys.base_prefix} {ROOT}"
    return hashlib.sha256(environment.lock.read_bytes() + made_by.encode()).hexdigest()


def project_fingerprint() -> str:
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


@contextlib.contextmanager
def only_one(environment: Environment) -> Iterator[IO[str]]:
    """Holds the environment for this process and its children; a second make waits here."""
    with open(f"{environment.folder}.lock", "w") as lock:  # noqa: PTH123 - beside the folder, which may be deleted
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"waiting for another make to finish {environment.folder.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def build(environment: Environment, lock: IO[str]) -> None:
    if is_ready(environment):
        return  # the make we waited for has done it
    started = time.monotonic()
    environment.project_stamp.unlink(missing_ok=True)
    if not has_packages(environment):
        install_packages(environment, lock)
    install_project(environment, lock)
    say(f"{environment.folder.name} is ready after {time.monotonic() - started:.0f} s")


def install_packages(environment: Environment, lock: IO[str]) -> None:
    require_ensurepip()
    environment.packages_stamp.unlink(missing_ok=True)
    say(f"creating {environment.folder.name} with Python {platform.python_version()}")
    create(environment)
    say(f"installing {count(environment.lock)} packages from {environment.lock.relative_to(ROOT)}")
    pip(environment, lock, "install", "--require-hashes", "--no-deps", "-r", str(environment.lock))
    write(environment.packages_stamp, packages_fingerprint(environment))


def install_project(environment: Environment, lock: IO[str]) -> None:
    pip(environment, lock, "install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    write(environment.project_stamp, project_fingerprint())


def require_ensurepip() -> None:
    try:
        import ensurepip  # noqa: F401 - Debian ships Python without it
        import venv  # noqa: F401
    except ImportError as missing:
        package = f"python3.{sys.version_info[1]}-venv"
        stop(f"{sys.executable} has no {missing.name}; on Debian and Ubuntu `apt install {package}` brings it")


def create(environment: Environment) -> None:
    if environment.folder.exists():
        shutil.rmtree(environment.folder)
    command = [INTERPRETER, "-m", "venv", str(environment.folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        stop(f"Python could not create {environment.folder.name}", done.stdout)


def pip(environment: Environment, lock: IO[str], *arguments: str) -> None:
    # Children keep the lock: if we are killed, the next make waits for an orphaned pip before it starts again.
    done = subprocess.run(
        [str(environment.python), "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", *arguments],
        env=pip_variables(environment), pass_fds=(lock.fileno(),), cwd=str(ROOT), check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        stop(reason(done.stdout), done.stdout)


def pip_variables(environment: Environment) -> Dict[str, str]:  # noqa: UP006
    variables = {**os.environ, "PIP_USER": "0", "PYTHONPATH": ""}  # what is installed belongs here and nowhere else
    certificates = system_certificates()
    if certificates and not any(name in variables for name in CERTIFICATE_VARIABLES) and not pip_has_own(environment):
        variables["PIP_CERT"] = certificates
    return variables


def system_certificates() -> str:
    """The bundle or folder this machine trusts, or nothing where only pip's own bundle is left."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return paths.cafile
    hashed = paths.capath and any(Path(paths.capath).glob("*.0"))  # an empty folder would make pip trust nobody
    return paths.capath if hashed else ""


def pip_has_own(environment: Environment) -> bool:
    command = [str(environment.python), "-m", "pip", "config", "list"]
    return ".cert=" in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def reason(output: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in output:
        return "the package index has a certificate this machine does not trust; name its authority in PIP_CERT"
    if "DO NOT MATCH THE HASHES" in output:
        return "the package index offers other files than the locked ones; nothing of them was installed"
    if any(sign in output for sign in NETWORK_TROUBLE):
        return "the package index cannot be reached; check the network or the proxy and run make again"
    return "pip could not install what the lock file names"


def count(lock: Path) -> int:
    return sum("==" in line for line in lock.read_text().splitlines())


def write(stamp: Path, fingerprint: str) -> None:
    draft = stamp.with_suffix(".draft")
    draft.write_text(fingerprint)
    draft.replace(stamp)


def say(sentence: str) -> None:
    print(f"tape: {sentence}", flush=True)


def stop(sentence: str, output: str = "") -> NoReturn:
    lines = [line for line in output.splitlines() if "Retry(total=" not in line or "Retry(total=0" in line]
    tail = "".join(f"  | {line}\n" for line in lines[-12:])
    sys.exit(f"{tail}tape: {sentence}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\ntape: interrupted; run make again and it begins afresh")
    except PermissionError as refused:
        sys.exit(f"tape: {refused.filename} may not be written by this user; it belongs to somebody else")
