"""How long a test waits for what must come."""

import os
from typing import Final

DEADLINE_S: Final = float(
    os.environ.get("TAPE_TEST_DEADLINE_S", "120")
)  # on a machine with other things to do; nothing takes this long unless something is wrong
