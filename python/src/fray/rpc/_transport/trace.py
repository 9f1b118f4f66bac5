"""The trace that a call belongs to, which crosses actors as W3C traceparent.

Programs that trace have loaded OpenTelemetry, so it is never imported here; without it a trace that comes
with a call is passed on with the calls that its method makes. Starting spans is left to the program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

call_trace: ContextVar[str] = ContextVar("fray_call_trace", default="")
"""The traceparent of the call that this code answers, "" if none."""
_FORM: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?\Z")


def current() -> str:
    """Return the traceparent for a call that is made here, "" without a trace."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is not None:
        span = tracing.get_current_span().get_span_context()
        if span.is_valid:
            return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags) & 0xFF:02x}"
    return call_trace.get()


def enter(traceparent: str) -> Callable[[], None]:
    """Have what this context does from now on belong to a trace; what is returned ends that."""
    token = call_trace.set(traceparent)
    leave = _enter_span(traceparent)

    def end() -> None:
        if leave is not None:
            leave()
        call_trace.reset(token)

    return end


def _enter_span(traceparent: str) -> Callable[[], None] | None:
    """Make the caller's span the parent of those that begin here."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    context: Any = sys.modules.get("opentelemetry.context")
    form = _FORM.match(traceparent)
    if tracing is None or context is None or form is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in form.groups())
    span = tracing.SpanContext(trace_id, span_id, is_remote=True, trace_flags=tracing.TraceFlags(flags))
    if not span.is_valid:
        return None
    token = context.attach(tracing.set_span_in_context(tracing.NonRecordingSpan(span)))

    def leave() -> None:
        context.detach(token)

    return leave
