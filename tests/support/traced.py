"""Traced: spans as OpenTelemetry's own SDK collects them, in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from bonny.otel.spans import OtelSpans
from bonny.telemetry import tracing


class Collected:
    """What was exported so far; `provider` is what exports it."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order of their ends."""
        return list(self._exporter.get_finished_spans())

    def named(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def trace(self, name: str) -> list[ReadableSpan]:
        """Of the first trace that began with a span of that name: its spans in the order of their ends."""
        spans = self.spans
        first = next(span for span in spans if span.name == name and span.parent is None)
        return [span for span in spans if trace_of(span) == trace_of(first)]

    def parent(self, span: ReadableSpan) -> str | None:
        """The name of the span's parent; None for the first of a trace."""
        if span.parent is None:
            return None
        return next(other.name for other in self.spans if id_of(other) == span.parent.span_id)

    def text(self) -> str:
        """All that leaves the process."""
        return "\n".join(span.to_json() for span in self.spans)


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.trace_id


def told(span: ReadableSpan) -> dict[str, Any]:
    """Its attributes."""
    return dict(span.attributes or {})


@contextmanager
def collecting(sampler: Sampler = ALWAYS_ON) -> Iterator[Collected]:
    """Let handlings, steps and requests of this process be collected until the block ends."""
    made = Collected(sampler)
    tracing.switch(OtelSpans(made.provider))
    try:
        yield made
    finally:
        tracing.switch(None)
