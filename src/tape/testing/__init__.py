"""Tests for programs built on Tape: a node in memory, a clock that the test moves, and repeatable faults."""

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
