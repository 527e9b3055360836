"""The reactions of a `tape work` worker, as docs/tutorial.md writes them."""

import tape
from tests.bench.users.handled import note


@tape.on("/tape/event/placed/**")
def handle(envelope):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    note(envelope.payload["number"])
