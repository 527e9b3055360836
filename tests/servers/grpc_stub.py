"""The stub that gRPC's own tool makes of tape.proto, as a client that others write has it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.proto import generate


def _stub() -> Any:
    with TemporaryDirectory() as folder:
        generate(Path(folder), "grpc_python")
        spec = spec_from_file_location("tape_pb2_grpc", Path(folder, "tape", "wire", "tape_pb2_grpc.py"))
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.TapeStub


TapeStub: Any = _stub()
