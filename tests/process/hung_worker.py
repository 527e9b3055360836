"""A worker of one hanging handler, as a program of its own: STORE HANDLER [TIMEOUT_S [once]]."""

import sys

import tape
from tape.reactions import run_dispatcher
from tape.work.options import Options
from tests.process import hanging_handlers as hanging
from tests.process.lifetime import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    url, name, *given = sys.argv[1:]
    options: Options = {"reaction_id": "rule", "dlq_after_n": 1, "process": name == "in_process"}
    if given:
        options["timeout"] = float(given[0])
    tape.on("/a/**", **options)(getattr(hanging, name))
    run_dispatcher(url, once="once" in given)
