"""Spans: makes the spans of `telemetry.tracing` with OpenTelemetry.

Attributes have the names of OpenTelemetry's semantic conventions; names that begin with `bonny.` have no convention.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from ..core.meters import Exemplar
from ..errors import Retry, Wait
from ..telemetry import tracing
from ..telemetry.logging import reconcile_id

if TYPE_CHECKING:
    from ..engine.reconcile import Reconcile

# Subresources of a Namespace: what follows them in a path is not a kind within the namespace.
OF_NAMESPACES: Final = ("finalize", "status")


class OtelSpans:
    """Spans by the tracer `bonny` of a provider."""

    def __init__(self, provider: TracerProvider, *, version: str = "") -> None:
        self._tracer = provider.get_tracer("bonny", version or None)

    @contextmanager
    def handling(self, axn: Reconcile[Any], *, controller: str) -> Iterator[None]:
        """Surround a reconcile: a trace of its own, whatever span was current where the worker was started."""
        kind, metadata = axn.resource["kind"], axn.resource["metadata"]
        attributes: dict[str, AttributeValue] = {
            "bonny.controller": controller,
            "bonny.action": str(axn.action),
            "bonny.reasons": sorted(map(str, axn.reasons)),
            "bonny.tries": axn.tries,
            "bonny.reconcile_id": reconcile_id(),
            "k8s.object.api_version": axn.resource["apiVersion"],
            "k8s.object.kind": kind,
            "k8s.object.name": metadata["name"],
            "k8s.object.uid": metadata["uid"],
        }
        if namespace := metadata.get("namespace"):
            attributes["k8s.namespace.name"] = namespace
        with self._span(f"{axn.action} {kind}", attributes, context=Context()) as span:
            context = span.get_span_context()
            ids = trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)
            tracing.observed.set(Exemplar(*ids, at=time.time()) if context.trace_flags.sampled else None)
            try:
                yield
                asked = "success" if axn.requeue_seconds is None else "requeue_after"
                span.set_attribute("bonny.outcome", asked if axn.waiting is None else "waiting")
            except BaseException as error:
                span.set_attribute("bonny.outcome", _outcome(error))
                raise

    async def reconcile(self, axn: Reconcile[Any], run: Awaitable[None], *, controller: str) -> None:
        """Await the run of a reconcile in its trace."""
        with self.handling(axn, controller=controller):
            await run

    async def step(self, name: str, run: Awaitable[None]) -> None:
        """Await the run of a step, in a span if its reconcile is recorded."""
        with self._span(name, {}) if trace.get_current_span().is_recording() else nullcontext():
            await run

    def request(self, method: str, path: str, *, host: str) -> tracing.Ended | None:
        """Begin the span of a request, and return how to end it; None outside of a recorded span, as for a watch."""
        if not trace.get_current_span().is_recording():
            return None
        template = path_template(path)
        attributes = {"http.request.method": method, "url.template": template, "server.address": host}
        span = self._tracer.start_span(f"{method} {template}", kind=SpanKind.CLIENT, attributes=attributes)

        def ended(status: int | None, error: BaseException | None) -> None:
            if status is not None:
                span.set_attribute("http.response.status_code", status)
            if error is not None or (status or 0) >= 400:
                _fail(span, str(status) if error is None else _type_of(error))
            span.end()

        return ended

    @contextmanager
    def _span(
        self, name: str, attributes: Mapping[str, AttributeValue], *, context: Context | None = None
    ) -> Iterator[Span]:
        # The text and traceback of an error may contain data of an object: only its type is recorded.
        with self._tracer.start_as_current_span(
            name, context, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except Exception as error:
                if not isinstance(error, Retry | Wait):
                    _fail(span, _type_of(error))
                raise


def _fail(span: Span, reason: str) -> None:
    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)


def _type_of(error: BaseException) -> str:
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def _outcome(error: BaseException) -> str:
    """As `controller_runtime_reconcile_total` counts it; `cancelled`: the process stopped, or lost its lease."""
    if isinstance(error, Retry):
        return "requeue" if error.after is None else "requeue_after"
    return "error" if isinstance(error, Exception) else "cancelled"


def path_template(path: str) -> str:
    """The path of a request without names of objects: `/api/v1/namespaces/{namespace}/pods/{name}/log`.

    A path that is not of the API's objects keeps only its first part: the rest may be anything.
    """
    parts = path.strip("/").split("/")
    root = {"api": 2, "apis": 3}.get(parts[0], 0)
    if not root or len(parts) <= root:
        return path if root else f"/{parts[0]}"
    prefix, rest = parts[:root], parts[root:]
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in OF_NAMESPACES:
        prefix, rest = [*prefix, "namespaces", "{namespace}"], rest[2:]
    return "/" + "/".join([*prefix, *(rest[0], "{name}", *rest[2:3])[: len(rest)]])
