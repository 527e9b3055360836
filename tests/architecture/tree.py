"""What the house tests walk over: the source modules and every text file of the repository."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "tape"
OUR_DOT_NAMES = {".ci", ".gitattributes", ".github", ".gitignore"}
GENERATED = "_pb2"
MADE_BY_TOOLS = {"__pycache__", "build", "dist", "node_modules"}


def modules() -> list[Path]:
    """Every Python module of the package that somebody wrote, in a stable order."""
    return sorted(path for path in PACKAGE.rglob("*.py") if not path.stem.endswith(GENERATED))


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of the repository that is text, with its text."""
    for path in files(ROOT):
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def files(folder: Path) -> Iterator[Path]:
    for path in filter(is_ours, sorted(folder.iterdir())):
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def is_ours(path: Path) -> bool:
    return path.name in OUR_DOT_NAMES or not (path.name.startswith(".") or path.name in MADE_BY_TOOLS)
