"""Every signal Tape gives or takes: traces here, logs and metrics as their parts come."""

import sys

from tape.core.event import Trace


def current_trace() -> Trace | None:
    """The span the caller is in, if the application uses OpenTelemetry; Tape never loads it by itself."""
    otel = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return None
    span = otel.get_current_span()
    context = span.get_span_context()
    if not context.is_valid:
        return None
    parent = getattr(span, "parent", None)
    return Trace(f"{context.trace_id:032x}", f"{context.span_id:016x}", f"{parent.span_id:016x}" if parent else "")
