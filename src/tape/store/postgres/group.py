"""Splits requests into groups whose verdicts do not depend on each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tape.core.ids import RunId
from tape.core.sequence import AppendRequest


@dataclass(slots=True)
class RequestGroup:
    """Requests whose verdicts do not depend on each other."""

    requests: list[AppendRequest] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _cells: set[tuple[str, str]] = field(default_factory=set)
    _runs: dict[RunId, tuple[bool, str]] = field(default_factory=dict)
    _guarded: set[RunId] = field(default_factory=set)
    _is_alone: bool = False

    def accepts(self, request: AppendRequest) -> bool:
        """Whether no request of the group can change the verdict of this one."""
        if self._is_alone or (request.fork is not None and self.requests):
            return False
        if request.key in self._keys or any(change.id in self._cells for change in request.cells):
            return False
        if any(event.cause is not None for event in request.events) and self.requests:
            return False
        for run_id, content_type in request.runs.items():
            known = self._runs.get(run_id)
            if known is not None and (
                run_id in self._guarded or request.expected_seq is not None or known != (request.opens, content_type)
            ):
                return False
        return True

    def add(self, request: AppendRequest) -> None:
        self.requests.append(request)
        self._is_alone = request.fork is not None
        if request.key is not None:
            self._keys.add(request.key)
        self._cells.update(change.id for change in request.cells)
        for run_id, content_type in request.runs.items():
            self._runs[run_id] = (request.opens, content_type)
            if request.expected_seq is not None:
                self._guarded.add(run_id)


def independent(requests: Sequence[AppendRequest]) -> Iterator[Sequence[AppendRequest]]:
    """The requests in order, split where a verdict would depend on a request before it."""
    group = RequestGroup()
    for request in requests:
        if not group.accepts(request):
            yield group.requests
            group = RequestGroup()
        group.add(request)
    if group.requests:
        yield group.requests
