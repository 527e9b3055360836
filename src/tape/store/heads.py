"""Where a run stands, as the statements that list a head's columns give it: the lineage comes last."""

import json
from collections.abc import Sequence
from typing import Any

from tape.core.fork import Ancestor, Lineage
from tape.core.run import Head


def head_of(columns: Sequence[Any]) -> Head:
    """A head as its row has it."""
    last_seq, closed_seq, floor, opened_seq, content_type, lineage = columns
    ancestors = () if lineage is None else tuple(Ancestor(*pair) for pair in json.loads(lineage))
    return Head(last_seq, closed_seq, floor, opened_seq, content_type, ancestors)


def lineage_json(lineage: Lineage) -> str | None:
    """A lineage as a row has it; most runs have none."""
    return json.dumps(lineage) if lineage else None
