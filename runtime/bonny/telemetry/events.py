"""Events: named moments in the life of an operator, for whoever wants to count, time or log them.

You need it to feed metrics, traces or an alarm of your own: `attach` a listener. You may `execute` events of your own.
You do not need it to read what happens: the parts log their failures themselves.

    attach("slow-runs", "bonny.reconciler.run.finished", remember_the_slowest, config=5.0)

The registry belongs to the process, like that of `logging`. A listener is called where the event happens, at once, on
the loop or in a handler's thread: it must not wait. One that raises is detached and reported; nobody else notices.
Without a listener an event costs a look into a dictionary (docs/decisions/0021).
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ..calling import text_of
from ..errors import OptionError
from .logging import STANDARD

__all__ = ["EVENTS", "LOGGER_ID", "Listener", "attach", "attach_logger", "attach_many", "detach", "execute", "lifetime",
           "measure", "metadata", "set_metadata", "span"]  # fmt: skip

PREFIX: Final = "bonny."

EVENTS: Final = (
    "bonny.task.initialized", "bonny.task.registered", "bonny.task.unregistered",
    "bonny.task.succeeded", "bonny.task.failed", "bonny.task.stopped",
    "bonny.scheduler.nodes.fetch.succeeded", "bonny.scheduler.nodes.fetch.failed",
    "bonny.scheduler.pods.fetch.succeeded", "bonny.scheduler.pods.fetch.failed",
    "bonny.scheduler.binding.succeeded", "bonny.scheduler.binding.failed",
    "bonny.client.request.answered",
    "bonny.reconciler.initialized", "bonny.reconciler.genserver.down",
    "bonny.reconciler.run.started", "bonny.reconciler.run.finished",
    "bonny.reconciler.fetch.succeeded", "bonny.reconciler.fetch.failed",
    "bonny.reconciler.reconcile.succeeded", "bonny.reconciler.reconcile.failed",
    "bonny.watcher.initialized", "bonny.watcher.genserver.down",
    "bonny.watcher.watch.started", "bonny.watcher.watch.succeeded", "bonny.watcher.watch.finished",
    "bonny.watcher.watch.failed", "bonny.watcher.watch.timedout", "bonny.watcher.chunk.received",
    "bonny.watcher.trouble.started", "bonny.watcher.trouble.finished",
    "bonny.watcher.handle.succeeded", "bonny.watcher.handle.failed",
)  # fmt: skip
"""Every event of the runtime; docs/reference/from-bonny.md says when each happens and what it carries."""

Listener: TypeAlias = Callable[[str, Mapping[str, float], Mapping[str, object], Any], object]
"""Called with the event's name, its measurements, its metadata, and the `config` that it was attached with."""

T = TypeVar("T")
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
LOGGER_ID: Final = "bonny.telemetry.logger"

log = logging.getLogger("bonny.telemetry")


class _Attached(NamedTuple):
    id: str
    listener: Listener
    config: Any


# The tuples are replaced, never changed: who executes an event reads without a lock.
_attached: dict[str, tuple[_Attached, ...]] = {}
_defaults: dict[str, object] = {}
_lock = threading.Lock()


# --- listening --------------------------------------------------------------------------------------------------------


def attach(id: str, name: str, listener: Listener, config: Any = None) -> None:  # noqa: A002  as in :telemetry
    """Call `listener` at each event called `name`, until `detach(id)`. Raises: as `attach_many`."""
    attach_many(id, (name,), listener, config)


def attach_many(id: str, names: Iterable[str], listener: Listener, config: Any = None) -> None:  # noqa: A002
    """Call `listener` at each event of these `names`: of `EVENTS`, or events of your own.

    Raises: `OptionError` when `id` is taken, `listener` is an `async def`, or the runtime has no such event.
    """
    names = tuple(dict.fromkeys(names))
    unknown = next((name for name in names if name.startswith(PREFIX) and name not in EVENTS), None)
    if unknown is not None:
        raise OptionError(f"there is no event {unknown!r}: correct it to one of bonny.telemetry.EVENTS")
    if inspect.iscoroutinefunction(listener):
        raise OptionError(f"the listener {id!r} is an `async def`: nobody could wait for it, so make it a `def`")
    with _lock:
        if any(known.id == id for listeners in _attached.values() for known in listeners):
            raise OptionError(f"a listener {id!r} is attached already: detach it first, or choose another id")
        for name in names:
            _attached[name] = (*_attached.get(name, ()), _Attached(id, listener, config))


def detach(id: str) -> bool:  # noqa: A002
    """End what `attach` began; returns whether there was such a listener. It may be called once more meanwhile."""
    with _lock:
        found = [name for name, listeners in _attached.items() if any(known.id == id for known in listeners)]
        for name in found:
            _attached[name] = tuple(known for known in _attached[name] if known.id != id)
            if not _attached[name]:
                del _attached[name]
    return bool(found)


def attach_logger(names: Iterable[str] = EVENTS, *, level: int = logging.DEBUG) -> None:
    """Log these events at `level` (default debug), failures as warnings; `detach(LOGGER_ID)` ends it."""
    attach_many(LOGGER_ID, names, _log, level)


def _log(name: str, measurements: Mapping[str, float], metadata: Mapping[str, object], level: int) -> None:
    extra: dict[str, object] = {}
    for key, value in {**measurements, **metadata}.items():
        extra[f"{key}_" if key in STANDARD else key] = text_of(value) if isinstance(value, BaseException) else value
    log.log(logging.WARNING if name.endswith(".failed") else level, name, extra=extra)


# --- telling ----------------------------------------------------------------------------------------------------------


def execute(name: str, measurements: Mapping[str, float] = NOTHING, metadata: Mapping[str, object] = NOTHING) -> None:
    """Tell the listeners of `name`; what they raise is not raised here.

    Measurements are numbers, durations in seconds. Metadata says what it was about, by names and texts that may be
    logged: never the body of an object.
    """
    listeners = _attached.get(name)
    if listeners is None:
        return
    metadata = {**_defaults, **metadata}
    for known in listeners:
        try:
            known.listener(name, measurements, metadata, known.config)
        except BaseException:
            detach(known.id)
            log.exception("a listener failed and was detached", extra={"listener": known.id, "event": name})


@contextmanager
def span(name: str, metadata: Mapping[str, object] = NOTHING) -> Iterator[dict[str, object]]:
    """Tell `<name>.start`, then `<name>.stop`, or `<name>.exception` with the `error`; the latter with the duration.

    What is put into the dictionary that it gives goes with the end.
    """
    found = dict(metadata)
    began = time.monotonic()
    execute(f"{name}.start", {"system_time": time.time()}, metadata)
    try:
        yield found
    except BaseException as error:
        execute(f"{name}.exception", {"duration": time.monotonic() - began}, {**found, "error": error})
        raise
    execute(f"{name}.stop", {"duration": time.monotonic() - began}, found)


@contextmanager
def lifetime(part: str, metadata: Mapping[str, object] = NOTHING) -> Iterator[None]:
    """Tell `<part>.initialized`, and in the end `<part>.genserver.down` with the `reason`: stopped, or the error."""
    execute(f"{part}.initialized", NOTHING, metadata)
    try:
        yield
    except BaseException as error:
        execute(f"{part}.genserver.down", NOTHING, {**metadata, "reason": type(error).__name__})
        raise
    execute(f"{part}.genserver.down", NOTHING, {**metadata, "reason": "stopped"})


def measure(function: Callable[[], T]) -> tuple[dict[str, float], T]:
    """Call `function`; returns `{"duration": seconds}` and what it returned. Raises: what it raises."""
    began = time.monotonic()
    result = function()
    return {"duration": time.monotonic() - began}, result


def metadata(more: Mapping[str, object] = NOTHING) -> dict[str, object]:
    """What goes with every event, and `more`."""
    return {**_defaults, **more}


def set_metadata(**values: object) -> None:
    """Let `values` go with every event from now on, as the operator's name does. An event's own beat them."""
    _defaults.update(values)
