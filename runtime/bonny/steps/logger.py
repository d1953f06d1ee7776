"""Logger: logs the objects that pass through the pipeline, and the requests."""

from __future__ import annotations

import logging
from typing import Any

from ..engine.reconcile import Reconcile
from ..resource import identify

log = logging.getLogger("bonny.steps.logger")


class Logger:
    """Usage: `Logger()`, as the first step of an operator, or in `Controller.steps`.

    `level` is the level of its lines. Default DEBUG: the worker logs each reconcile that changed something at info.
    Names and kinds are logged, never contents.
    """

    def __init__(self, *, level: int = logging.DEBUG) -> None:
        self._level = level

    def __call__(self, axn: Reconcile[Any]) -> None:
        """Log the start, and have the end logged."""
        if log.isEnabledFor(self._level):
            self._say("processing", axn)
            axn.at_end(self._sent)

    def _sent(self, axn: Reconcile[Any]) -> None:
        """Log the requests, and the outcome."""
        for descendant in axn.descendants if axn.is_sent("descendants") else ():
            self._say("descendant", axn, descendant=identify(descendant))
        if axn.stored is not None:
            self._say("status", axn, fields=",".join(sorted(axn.stored.get("status") or ())))
        for event in axn.emitted:
            self._say("event", axn, type=event.type.value, reason=event.reason)
        self._say("processed", axn, outcome="succeeded" if axn.unfinished is None else axn.unfinished.reason)

    def _say(self, message: str, axn: Reconcile[Any], **extra: str) -> None:
        about = {"api_version": axn.kind.api_version, "action": f"{axn.kind.kind}/{axn.action}"}
        log.log(self._level, message, extra={"object": str(axn.key), **about, **extra})
