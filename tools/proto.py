"""Generates the Python code of src/tape/wire/tape.proto: `make proto`, or into another folder to compare."""

import sys
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PROTO = SOURCE / "tape" / "wire" / "tape.proto"


def generate(target: Path, *kinds: str) -> None:
    """Messages and their types, or other kinds of output that protoc knows, below a folder."""
    outputs = [f"--{kind}_out={target}" for kind in kinds or ("python", "pyi")]
    includes = [f"-I{SOURCE}", f"-I{files('grpc_tools') / '_proto'}"]
    if protoc.main(["protoc", *includes, *outputs, str(PROTO)]) != 0:
        raise SystemExit(1)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
