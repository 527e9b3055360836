"""Heads of runs from rows, whose last column is the lineage."""

import json
from collections.abc import Sequence
from typing import Any

from tape.core.fork import Ancestor, Lineage
from tape.core.run import Head


def head_of(columns: Sequence[Any]) -> Head:
    last_seq, closed_seq, floor, opened_seq, content_type, lineage = columns
    ancestors = () if lineage is None else tuple(Ancestor(*pair) for pair in json.loads(lineage))
    return Head(last_seq, closed_seq, floor, opened_seq, content_type, ancestors)


def lineage_json(lineage: Lineage) -> str | None:
    """The column of a lineage; None for the many runs that have none."""
    return json.dumps(lineage) if lineage else None
