"""The types of ids and positions."""

import re
from typing import NewType

RunId = NewType("RunId", str)
Seq = NewType("Seq", int)
GlobalSeq = NewType("GlobalSeq", int)
Epoch = NewType("Epoch", int)

ID_GRAMMAR = "[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
ID_IN_WORDS = "1 to 128 of A-Z a-z 0-9 . _ - that begin with a letter or digit"
SYSTEM_PREFIX = "tape."

is_id = re.compile(ID_GRAMMAR).fullmatch
