"""How long a test waits for what must come."""

from typing import Final

DEADLINE_S: Final = 120.0  # on a machine with other things to do; nothing takes this long unless something is wrong
