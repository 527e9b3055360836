"""Every parser that meets strangers, as a target of a fuzzer.

A target takes any bytes. It raises if a property that its docstring states does not hold, and what is refused is
refused with an error of Tape.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tests.fuzz import cursors, http_edge, json_guard, paths, predicates, sse_frames
from tests.fuzz.inputs import Target


def plain(target: Target) -> Callable[[], AbstractContextManager[Target]]:
    @contextmanager
    def opened() -> Iterator[Target]:
        yield target

    return opened


TARGETS: Final[Mapping[str, Callable[[], AbstractContextManager[Target]]]] = {
    "subject": plain(paths.subject),
    "pattern": plain(paths.pattern),
    "page_cursor": plain(cursors.page_cursor),
    "last_event_id": plain(cursors.last_event_id),
    "json_text": plain(json_guard.json_text),
    "request_json": plain(json_guard.request_json),
    "sse_stream": plain(sse_frames.sse_stream),
    "sse_frame": plain(sse_frames.sse_frame),
    "predicate": plain(predicates.predicate),
    "http_request": http_edge.http_request,
}
