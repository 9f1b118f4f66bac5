"""Calls belong to the trace of who makes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar, Token
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorContext, ActorHandle, ActorServer, FixedResolver
from fray.rpc._transport.trace import call_trace, current

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class SpanContext(NamedTuple):
    trace_id: int
    span_id: int
    is_remote: bool
    trace_flags: int

    @property
    def is_valid(self) -> bool:
        return bool(self.trace_id and self.span_id)


class Span(NamedTuple):
    context: SpanContext

    def get_span_context(self) -> SpanContext:
        return self.context


NOTHING = Span(SpanContext(0, 0, False, 0))
SPAN: ContextVar[Span] = ContextVar("span", default=NOTHING)


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of OpenTelemetry's API as is used, which is no dependency."""
    trace, context = ModuleType("opentelemetry.trace"), ModuleType("opentelemetry.context")

    def set_span_in_context(span: Span) -> Span:
        return span

    def attach(span: Span) -> Token[Span]:
        return SPAN.set(span)

    vars(trace).update(
        get_current_span=SPAN.get,
        SpanContext=SpanContext,
        TraceFlags=int,
        NonRecordingSpan=Span,
        set_span_in_context=set_span_in_context,
    )
    vars(context).update(attach=attach, detach=SPAN.reset)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", trace)
    monkeypatch.setitem(sys.modules, "opentelemetry.context", context)


class Traced:
    def told(self, ctx: ActorContext) -> list[Any]:
        span = SPAN.get().get_span_context()
        return [ctx.trace, current(), f"{span.trace_id:032x}", f"{span.span_id:016x}", span.is_remote]

    async def told_later(self, ctx: ActorContext) -> list[Any]:
        return self.told(ctx)

    def forward(self, to: ActorHandle) -> Any:
        return to.told()


@pytest.fixture
def handle() -> Iterator[ActorHandle]:
    with LocalCluster() as cluster, ActorServer(cluster) as server:
        server.register("traced", Traced(), max_concurrency=2)
        server.serve_background()
        yield FixedResolver(server.address).lookup("traced")


def test_a_trace_is_passed_on_without_opentelemetry(handle: ActorHandle) -> None:
    token = call_trace.set(PARENT)
    try:
        assert handle.told()[:2] == [PARENT, PARENT]
        assert handle.told_later()[:2] == [PARENT, PARENT]
        assert handle.forward(handle)[0] == PARENT
    finally:
        call_trace.reset(token)
    assert handle.told()[:2] == ["", ""], "the trace of a call ends with it"
    assert handle.told_later()[:2] == ["", ""]


@pytest.mark.usefixtures("tracing")
def test_a_span_is_the_parent_of_those_of_the_method(handle: ActorHandle) -> None:
    assert handle.told() == ["", "", "0" * 32, "0" * 16, False]
    token = SPAN.set(Span(SpanContext(0xAF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331, False, 1)))
    try:
        want = [PARENT, PARENT, PARENT[3:35], PARENT[36:52], True]
        assert handle.told() == want
        assert handle.told_later() == want
        assert handle.forward(handle) == want
    finally:
        SPAN.reset(token)
    assert handle.told() == ["", "", "0" * 32, "0" * 16, False]


@pytest.mark.usefixtures("tracing")
@pytest.mark.parametrize(
    "text", ["00", "zz-" + PARENT[3:], PARENT[:40], "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
)
def test_what_is_no_trace_is_left_alone(handle: ActorHandle, text: str) -> None:
    token = call_trace.set(text)
    try:
        assert handle.told()[2:] == ["0" * 32, "0" * 16, False]
    finally:
        call_trace.reset(token)
