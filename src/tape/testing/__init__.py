"""Testing what is built on Tape: a whole node in memory, time that a test moves, and faults that a seed repeats."""

from tape.testing.clock import Clock
from tape.testing.expecting import assert_entries
from tape.testing.faults import Faults, InjectedFault
from tape.testing.node import TestNode, open_node

__all__ = [
    "Clock",
    "Faults",
    "InjectedFault",
    "TestNode",
    "assert_entries",
    "open_node",
]
