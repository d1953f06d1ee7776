"""Telemetry: the helpers of Elixir's `:telemetry` and `Bonny.Sys` beside `bonny.telemetry`: spans, durations, a log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from ..calling import text_of
from ..telemetry import events
from ..telemetry.events import EVENTS, NOTHING, attach_many, execute
from ..telemetry.logging import STANDARD

T = TypeVar("T")
LOGGER_ID: Final = "bonny.telemetry.logger"

log = logging.getLogger("bonny.telemetry")


def attach_logger(names: Iterable[str] = EVENTS, *, level: int = logging.DEBUG) -> None:
    """Log events at `level` (default debug) and failures as warnings, until `detach(LOGGER_ID)`."""
    attach_many(LOGGER_ID, names, _log, level)


def _log(name: str, measurements: Mapping[str, float], metadata: Mapping[str, object], level: int) -> None:
    extra: dict[str, object] = {}
    for key, value in {**measurements, **metadata}.items():
        extra[f"{key}_" if key in STANDARD else key] = text_of(value) if isinstance(value, BaseException) else value
    log.log(logging.WARNING if name.endswith(".failed") else level, name, extra=extra)


@contextmanager
def span(name: str, metadata: Mapping[str, object] = NOTHING) -> Iterator[dict[str, object]]:
    """Emit `<name>.start`, then `<name>.stop`, or `<name>.exception` with the `error`; both ends with the duration.

    Yields a dictionary: its items are added to the metadata of the end.
    """
    ending = dict(metadata)
    began = time.monotonic()
    execute(f"{name}.start", {"system_time": time.time()}, metadata)
    try:
        yield ending
    except BaseException as error:
        execute(f"{name}.exception", {"duration": time.monotonic() - began}, {**ending, "error": error})
        raise
    execute(f"{name}.stop", {"duration": time.monotonic() - began}, ending)


def measure(function: Callable[[], T]) -> tuple[dict[str, float], T]:
    """Call `function`; returns `{"duration": seconds}` and its result. Raises: what `function` raises."""
    began = time.monotonic()
    result = function()
    return {"duration": time.monotonic() - began}, result


def metadata(more: Mapping[str, object] = NOTHING) -> dict[str, object]:
    """The metadata of every event (`telemetry.set_metadata`), with `more`."""
    return {**events.defaults, **more}
