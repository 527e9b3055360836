"""Records which functions of Tape a program calls, each below the function that called it."""

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import tape

SOURCE = str(Path(tape.__file__).parent) + "/"
GENERATED = "_pb2"
LOOP = tuple(f"/asyncio/{name}.py" for name in ("base_events", "events", "runners"))


@dataclass(frozen=True, slots=True)
class Function:
    """A function by its file within the package and its qualified name."""

    file: str
    name: str

    @classmethod
    def of(cls, code: CodeType) -> "Function":
        return cls(code.co_filename.removeprefix(SOURCE), code.co_qualname.replace("<locals>.", ""))


@dataclass(frozen=True, slots=True)
class Call:
    """A first call: the function, the function that called it, and how many functions of Tape are on the stack."""

    function: Function
    caller: Function | None
    depth: int


class Recorder:
    """Records the calls of all threads that start after `install`, while it is on."""

    def __init__(self) -> None:
        self._is_on = False
        self._calls: dict[Function, Call] = {}

    def install(self) -> None:
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def start(self) -> None:
        self._calls = {}
        self._is_on = True

    def stop(self) -> list[Call]:
        """The calls since `start`, in the order of each function's first one."""
        self._is_on = False
        return list(self._calls.values())

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if self._is_on and event == "call" and is_recorded(frame.f_code):
            function = Function.of(frame.f_code)
            stack = [Function.of(code) for code in callers(frame)]
            known = self._calls.get(function)
            if known is None:
                self._calls[function] = Call(function, stack[0] if stack else None, len(stack) + 1)
            elif known.depth < len(stack) + 1:
                self._calls[function] = Call(function, known.caller, len(stack) + 1)


def callers(frame: FrameType) -> list[CodeType]:
    """The functions of Tape that wait for this one, the nearest first, up to the event loop that runs them."""
    found, at = [], frame.f_back
    while at is not None and not at.f_code.co_filename.endswith(LOOP):
        if is_recorded(at.f_code):
            found.append(at.f_code)
        at = at.f_back
    return found


def is_recorded(code: CodeType) -> bool:
    """Whether it is a named function of the package; what is generated, a lambda or a comprehension is not."""
    return code.co_filename.startswith(SOURCE) and code.co_name[0] != "<" and GENERATED not in code.co_filename
