"""A worker of one hanging handler, as a program of its own: STORE HANDLER [TIMEOUT_S]."""

import sys

import tape
from tape.reactions import run_dispatcher
from tests.process import hanging
from tests.process.lifetime import end_with_parent

if __name__ == "__main__":
    end_with_parent()
    url, name, *timeout = sys.argv[1:]
    options = {"timeout": float(timeout[0])} if timeout else {}
    tape.on("/a/**", reaction_id="rule", dlq_after_n=1, **options)(getattr(hanging, name))  # type: ignore[arg-type]
    run_dispatcher(url)
