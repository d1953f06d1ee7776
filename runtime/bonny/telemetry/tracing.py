"""Tracing: where handlings, their steps and their requests become spans, if somebody wants them.

You need it to make a span of another part of the runtime. What makes them is `otel`, which is imported only where
traces are wanted; elsewhere each of these places costs one comparison with None.
You do not need it for spans of your own: use OpenTelemetry's API in a handler, as anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from ..core.meters import Exemplar
from ..errors import UsageError
from ..resource import Resource

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["OFF", "Ended", "Handling", "Spans", "find", "observed", "switch"]

# OpenTelemetry's own variables (its specification, "Environment Variable Specification"): any of them asks for traces.
ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
DISABLED: Final = "OTEL_SDK_DISABLED"
OFF: Final = nullcontext()


class Handling(Protocol):
    """What a span tells of a handling; an `Axn` is one."""

    @property
    def action(self) -> str: ...
    @property
    def reasons(self) -> Iterable[str]: ...
    @property
    def tries(self) -> int: ...
    @property
    def resource(self) -> Resource: ...
    @property
    def requeue_seconds(self) -> float | None: ...


Ended: TypeAlias = Callable[[int | None, BaseException | None], None]
"""Called at the end of a request with the status of its answer; without an answer, with the error."""


class Spans(Protocol):
    """Makes spans. None of them holds the text of an error, a body, or the query of a URL."""

    def handling(self, axn: Handling, *, controller: str) -> AbstractContextManager[object]:
        """Surrounds a handling: a trace of its own."""

    def step(self, name: str) -> AbstractContextManager[object]:
        """Surrounds a step, within a handling that is recorded."""

    def request(self, method: str, path: str, *, host: str) -> Ended | None:
        """A request, within a span that is recorded; returns how to end it, or None elsewhere."""


spans: Spans | None = None
"""What makes the spans of this process; None: nobody wants them. Set by `switch`, read as `tracing.spans`."""

observed: ContextVar[Exemplar | None] = ContextVar("observed", default=None)
"""The trace of the last handling in this asyncio task, where it is recorded."""


def handling(axn: Handling, *, controller: str) -> AbstractContextManager[object]:
    """Surrounds a reconcile; free where nobody traces."""
    return OFF if spans is None else spans.handling(axn, controller=controller)


def step(name: str) -> AbstractContextManager[object]:
    """Surrounds a step; free where nobody traces."""
    return OFF if spans is None else spans.step(name)


def switch(to: Spans | None) -> None:
    """Let `to` make the spans from now on."""
    global spans  # noqa: PLW0603  of the process, as the listeners of events and the providers of OpenTelemetry are
    spans = to


def find(
    provider: TracerProvider | None, *, service: str, version: str, environ: Mapping[str, str] | None = None
) -> Spans | None:
    """What makes spans: by `provider`, else by that of the process, else by one that the environment asks for.

    Raises: `UsageError` when what is asked for is not installed, or `provider` is none.
    """
    environ = os.environ if environ is None else environ
    unwanted = environ.get(DISABLED, "").lower() == "true" or environ.get(ASKING[0]) == "none"
    asking = "" if unwanted else next((name for name in ASKING if environ.get(name)), "")
    if provider is None and not asking and "opentelemetry.trace" not in sys.modules:
        return None
    try:
        from . import otel  # noqa: PLC0415  its library is optional

        return otel.find(provider, service=service, version=version, environ=environ if asking else None)
    except ImportError as error:
        raise UsageError(
            f"{asking or 'Operator(tracing=...)'} asks for traces, but {error.name} is not installed: "
            "install the extra `otel`, as in pip install '.[otel]'"
        ) from error
