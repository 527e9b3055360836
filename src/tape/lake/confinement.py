"""Denies a thread, and every thread that it starts, to change files: with Landlock, where Linux has it."""

import ctypes
import platform
import sys
from typing import Final

# The numbers of these calls are the same on every processor.
CREATE_RULESET: Final = 444
RESTRICT_SELF: Final = 446
ASK_VERSION: Final = 1
NO_NEW_PRIVILEGES: Final = 38
MACHINES: Final = ("x86_64", "aarch64")

# What is denied, by the version of Landlock that can: executing, writing, removing and making any kind of file;
# linking and renaming across folders; truncating. Reading is left alone.
FILES: Final = 1 << 0 | 1 << 1 | sum(1 << right for right in range(4, 13))
LINKS: Final = (2, 1 << 13)
TRUNCATION: Final = (3, 1 << 14)
NETWORK: Final = (4, 1 << 0 | 1 << 1)  # listening and connecting, in TCP


class _Denied(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


def confine() -> bool:
    """Denies the calling thread to write, create or remove files from now on; returns False if Linux cannot.

    Files that are open, such as stdout, stay usable. It cannot be undone.
    """
    if not sys.platform.startswith("linux") or platform.machine() not in MACHINES:
        return False
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(CREATE_RULESET, None, 0, ASK_VERSION)
    if version < 1 or system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    denied = _denied(version)
    size = ctypes.sizeof(denied) if version >= NETWORK[0] else ctypes.sizeof(ctypes.c_uint64)
    ruleset = system.syscall(CREATE_RULESET, ctypes.byref(denied), ctypes.c_size_t(size), 0)
    return bool(ruleset >= 0 and system.syscall(RESTRICT_SELF, ruleset, 0) == 0)


def _denied(version: int) -> _Denied:
    files = FILES | sum(right for since, right in (LINKS, TRUNCATION) if version >= since)
    return _Denied(files, NETWORK[1] if version >= NETWORK[0] else 0)
