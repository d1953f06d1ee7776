"""Logger: logs what passes through the pipeline and what is sent."""

from __future__ import annotations

import logging
from typing import Any

from ..axn import Axn
from ..events import Event
from ..resource import Resource, identify

log = logging.getLogger("bonny.steps.logger")


class Logger:
    """Usage: `Logger()`, as the first step of an operator, or in `Controller.steps`.

    `level` is the level of its lines. Default DEBUG: the worker logs each reconcile that changed something at info.
    Names and kinds are logged, never contents.
    """

    def __init__(self, *, level: int = logging.DEBUG) -> None:
        self._level = level

    def __call__(self, axn: Axn[Any]) -> None:
        """Log the start, and register hooks that log what is applied and emitted."""
        if not log.isEnabledFor(self._level):
            return
        self._say("processing", axn)
        axn.register_before_apply_descendants(self._descendants)
        axn.register_before_apply_status(self._status)
        axn.register_before_emit_event(self._event)
        axn.register_after_processed(self._processed)

    def _descendants(self, descendants: list[Resource], axn: Axn[Any]) -> list[Resource]:
        for descendant in descendants:
            self._say("descendant", axn, descendant=identify(descendant))
        return descendants

    def _status(self, resource: Resource, axn: Axn[Any]) -> Resource:
        self._say("status", axn, fields=",".join(sorted(resource["status"])))
        return resource

    def _event(self, event: Event, axn: Axn[Any]) -> Event:
        self._say("event", axn, type=event.type.value, reason=event.reason)
        return event

    def _processed(self, axn: Axn[Any]) -> None:
        self._say("processed", axn, outcome="succeeded" if axn.unfinished is None else axn.unfinished.reason)

    def _say(self, message: str, axn: Axn[Any], **extra: str) -> None:
        name, api_version, action = axn.identifier()
        log.log(self._level, message, extra={"object": name, "api_version": api_version, "action": action, **extra})
