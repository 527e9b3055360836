"""What `schemathesis run` needs to know beside the OpenAPI document: values of its formats, and what facts refuse.

Use it with SCHEMATHESIS_HOOKS=tests.server.schemathesis_hooks and the configuration file beside it. If GROWTH is set to
the URL of the server's store and a file, the file gets a line for each request with what the store grew by.
"""

import os
import re
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.checks import load_all_checks
from schemathesis.core.failures import Failure
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from tape.operations.catalogue import ALL
from tape.operations.exceptions import OTHER_FORMS
from tape.operations.surfaces import surfaces_of
from tests.server import growth

FACTS = [
    "If-Match and If-None-Match exclude each other",
    "a run that is .* has no time of closing",
    "the journal is of epoch",
    "can be forked at",
    "not both$",
    "and no other, names its",
    "publish_target must be",
    "requires a connector",
    "requires dispatch mode",
    "is done inline, so it cannot be dispatched",
    "comes after wait",
    "belong to Tape",
    "is a fork that",
    "the effect's key is over",
    "the payload of a gate_timeout is",
    "is reserved",
    "a cursor",
    "a row replayed later would be handled twice",
    "there is no [0-9]+ yet",
    r"an int is outside -2\^63",  # in a payload
    "a text holds",
    "an amount is whole millionths",  # of what was spent before and this together
]

# Header values are latin-1, and a generated name may stand in one.
schemathesis.openapi.format(
    "printable", st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=20)
)
schemathesis.openapi.format("cursor", st.just(""))
schemathesis.openapi.format("subject", st.from_regex(r"\A(/[a-z0-9]{1,8}){1,4}\Z"))
schemathesis.openapi.format("subject-pattern", st.from_regex(r"\A(/[a-z0-9]{1,8}){1,3}(/\*|/\*\*)?\Z"))
schemathesis.openapi.format("cel", st.sampled_from(["", "true", "payload.n > 1"]))
schemathesis.openapi.format("json-object", st.sampled_from(["{}", '{"a": 1}']))
load_all_checks()


@schemathesis.check
def accepted_unless_facts_speak_against_it(ctx: Any, response: Any, case: Any) -> bool | None:
    """A request that fits its schema is accepted, unless what the server holds, or two fields together, refuse it."""
    detail = response.json().get("detail", "") if response.status_code == 400 else ""
    if any(re.search(fact, detail) for fact in FACTS):
        return None
    accepted: bool | None = positive_data_acceptance(ctx, response, case)
    return accepted


@schemathesis.check
def refused_unless_only_its_format_is_wrong(ctx: Any, response: Any, case: Any) -> bool | None:
    """A request that does not fit its schema is refused; of our own formats schemathesis cannot tell what is wrong."""
    try:
        refused: bool | None = negative_data_rejection(ctx, response, case)
    except Failure as failure:
        if "violates `format`" not in failure.message:
            raise
        return None
    return refused


OPERATIONS = {**{" ".join(http): each.name for each in ALL if (http := surfaces_of(each).http)}, **OTHER_FORMS}

if "GROWTH" in os.environ:
    STORE, FILE = os.environ["GROWTH"].split()
    census = growth.Census(STORE)

    @schemathesis.hook
    def after_call(ctx: Any, case: Any, response: Any) -> None:
        operation = OPERATIONS.get(f"{case.method} {case.operation.path}")
        is_append = operation == "event.append" and response.status_code < 300
        is_keyed = any(name.lower() == "idempotency-key" for name in case.headers)
        call = growth.Call(
            operation=operation,
            status=str(response.status_code),
            is_accepted=response.status_code < 400,
            growth=census.look(),
            events=len(response.json()["entries"]) if is_append and not is_keyed else None,
        )
        growth.write(call, Path(FILE))
