"""Tracing: whether reconciles, their steps and their requests become spans.

Each place that could make a span compares `spans` with None. For spans of your own, use OpenTelemetry's API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from ..core.meters import Exemplar

Ended: TypeAlias = Callable[[int | None, BaseException | None], None]
"""Called at the end of a request with the status of its answer; without an answer, with the error."""


class Spans(Protocol):
    """Makes spans."""

    async def reconcile(self, axn: Any, run: Awaitable[None], *, controller: str) -> None:
        """Await the run of a reconcile, an `engine.reconcile.Reconcile`, in its trace."""

    async def step(self, name: str, run: Awaitable[None]) -> None:
        """Await the run of a step, in a span if its reconcile is recorded."""

    def request(self, method: str, path: str, *, host: str) -> Ended | None:
        """Begin the span of a request, and return how to end it; None outside of a recorded span."""


spans: Spans | None = None
"""Makes the spans of this process; None: no traces. Set by `switch`, read as `tracing.spans`."""

observed: ContextVar[Exemplar | None] = ContextVar("observed", default=None)
"""The trace of the last reconcile in this asyncio task, if it is recorded."""


def switch(to: Spans | None) -> None:
    """Let `to` make the spans from now on."""
    global spans  # noqa: PLW0603  of the process, as the listeners of events and the providers of OpenTelemetry are
    spans = to
