"""Events: named moments in the life of an operator, to be counted, timed or logged by listeners.

You need it to feed metrics, traces or alarms of your own: `attach` a listener. You may `execute` events of your own.

    attach("slow-runs", "bonny.reconciler.run.finished", remember_the_slowest, config=5.0)

The registry belongs to the process, like the one of `logging`. A listener is called at once where the event happens,
on the event loop or in a handler's thread: it must not block. A listener that raises is detached and logged. An event
costs one lookup for each attached listener.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from ..errors import OptionError

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
    "bonny.watcher.failing.started", "bonny.watcher.failing.finished",
    "bonny.watcher.handle.succeeded", "bonny.watcher.handle.failed",
)  # fmt: skip
"""Every event of the runtime, with the name of Elixir's Bonny if it has such an event."""

Listener: TypeAlias = Callable[[str, Mapping[str, float], Mapping[str, object], Any], object]
"""Called with the event's name, measurements and metadata, and with the `config` that was given to `attach`."""

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

log = logging.getLogger("bonny.telemetry")


class _Attached(NamedTuple):
    id: str
    names: frozenset[str]
    listener: Listener
    config: Any


# By id. Each use is one operation that is atomic in CPython, so threads need no lock.
_attached: dict[str, _Attached] = {}
defaults: dict[str, object] = {}
"""The metadata of every event."""


# --- listening ---


def attach(id: str, name: str, listener: Listener, config: Any = None) -> None:  # noqa: A002  as in :telemetry
    """Call `listener` at each event `name`, until `detach(id)`. Raises: as `attach_many`."""
    attach_many(id, (name,), listener, config)


def attach_many(id: str, names: Iterable[str], listener: Listener, config: Any = None) -> None:  # noqa: A002
    """Call `listener` at each event of `names`, which are names of `EVENTS` or of events of your own.

    Raises: `OptionError` when `id` is taken, `listener` is an `async def`, or the runtime has no such event.
    """
    attached = _Attached(id, frozenset(names), listener, config)
    unknown = next((name for name in sorted(attached.names) if name.startswith(PREFIX) and name not in EVENTS), None)
    if unknown is not None:
        raise OptionError(f"the event {unknown!r} does not exist: correct it to one of bonny.telemetry.EVENTS")
    if inspect.iscoroutinefunction(listener):
        raise OptionError(f"the listener {id!r} is an `async def`, which cannot be awaited: make it a `def`")
    if _attached.setdefault(id, attached) is not attached:
        raise OptionError(f"a listener {id!r} is already attached: detach it first, or choose another id")


def detach(id: str) -> bool:  # noqa: A002
    """Remove the listener `id`; returns whether it was attached. An event in progress may still call it."""
    return _attached.pop(id, None) is not None


# --- emitting ---


def execute(name: str, measurements: Mapping[str, float] = NOTHING, metadata: Mapping[str, object] = NOTHING) -> None:
    """Call the listeners of `name`; exceptions of listeners are not raised here.

    Measurements are numbers, durations in seconds. Metadata are names and texts that may be logged: never the body of
    an object.
    """
    for each in tuple(_attached.values()):
        if name not in each.names:
            continue
        try:
            each.listener(name, measurements, {**defaults, **metadata}, each.config)
        except BaseException:
            detach(each.id)
            log.exception("a listener failed and was detached", extra={"listener": each.id, "event": name})


@contextmanager
def lifetime(part: str, metadata: Mapping[str, object] = NOTHING) -> Iterator[None]:
    """Emit `<part>.initialized`, and in the end `<part>.genserver.down` with the `reason`: stopped, or the error."""
    execute(f"{part}.initialized", NOTHING, metadata)
    try:
        yield
    except BaseException as error:
        execute(f"{part}.genserver.down", NOTHING, {**metadata, "reason": type(error).__name__})
        raise
    execute(f"{part}.genserver.down", NOTHING, {**metadata, "reason": "stopped"})


def set_metadata(**values: object) -> None:
    """Add `values` to the metadata of every event from now on; metadata of an event itself take precedence."""
    defaults.update(values)
