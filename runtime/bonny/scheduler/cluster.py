"""Cluster: what schedulers see: streams of nodes and pods, the cache that they fill, and selections of both.

All schedulers of an operator share one, so each sees at once what the others decide.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from ..calling import call
from ..core.objects import UNREADABLE
from ..core.store import Delta
from ..engine.stream import Stream
from ..errors import InvalidObject, OptionError
from ..kinds import Kind
from ..resource import Key, key_of
from .assume import AssumeCache
from .views import PodView

__all__ = ["NODE", "POD", "Cluster", "Follow", "Selected", "Selection"]

NODE: Final = Kind("v1", "Node")
POD: Final = Kind("v1", "Pod")
# Lists are asked for again after so long.
RENEWED_SECONDS: Final = 1.0

Follow: TypeAlias = Callable[[Kind], Stream]
"""Gives the stream of a kind in all namespaces, the same for the same kind. Whoever gives it runs it."""

Selection: TypeAlias = Kind | Iterable[Mapping[str, Any]]
Ask: TypeAlias = Callable[[], Selection | Awaitable[Selection]]

log = logging.getLogger("bonny.scheduler.cluster")


class Listener(Protocol):
    """Is told what becomes of pods, after the cache."""

    def pod_seen(self, pod: PodView) -> None: ...
    def pod_gone(self, uid: str) -> None: ...
    def stream_advanced(self) -> None: ...
    def server_restored(self) -> None: ...


class Cluster:
    """The streams of all nodes and all pods, and the cache. Make it before the streams run."""

    def __init__(self, follow: Follow) -> None:
        self.cache = AssumeCache()
        self.follow = follow
        self.nodes = follow(NODE)
        self.pods = follow(POD)
        self.listeners: list[Listener] = []
        for stream in (self.nodes, self.pods):
            stream.subscribe(self)

    def seen(self, source: Stream, delta: Delta) -> None:
        if source is self.nodes:
            self.cache.see_node(delta.key.name, delta.new)
            return
        pod = None if delta.new is None else PodView(delta.new)
        if delta.old is not None and (pod is None or pod.uid != delta.old.meta.uid):
            self.cache.pod_gone(delta.old.meta.uid)
            for listener in self.listeners:
                listener.pod_gone(delta.old.meta.uid)
        if pod is not None and _is_readable(pod):
            self.cache.see_pod(pod)
            for listener in self.listeners:
                listener.pod_seen(pod)

    def advanced(self, source: Stream) -> None:  # noqa: ARG002  a subscriber is told by whom
        for listener in self.listeners:
            listener.stream_advanced()

    def restored(self, source: Stream) -> None:  # noqa: ARG002
        for listener in self.listeners:
            listener.server_restored()


def _is_readable(pod: PodView) -> bool:
    """Whether it can be decoded. The API server lets nothing else in; one bad object must not hold up the others."""
    try:
        return pod.demand is not None
    except (InvalidObject, *UNREADABLE):
        log.exception("a pod cannot be read", extra={"pod": str(pod.key)})
        return False


class Selected:
    """Which objects of a kind a scheduler wants: those of a stream, or those in a list that is asked for again."""

    def __init__(self, ask: Ask, *, everything: Stream, follow: Follow, changed: Callable[[Key], None]) -> None:
        """`everything` is the stream of all of the kind, whose changes others see. `changed` is called with the key of
        each object that was not one of them before, or is not any more."""
        asked = None if inspect.iscoroutinefunction(ask) else ask()
        self.stream = follow(asked) if isinstance(asked, Kind) else None
        self.streams = list(filter(None, dict.fromkeys((everything, self.stream))))
        """What has to be current."""

        self._ask = ask
        self._changed = changed
        self._keys: frozenset[Key] = frozenset()
        self._renewed = float("-inf")
        for stream in self.streams[1:]:
            stream.subscribe(self)

    def __contains__(self, key: Key) -> bool:
        return key in self._keys if self.stream is None else self.stream.store.get(key) is not None

    async def renew(self, *, seconds: float) -> None:
        """Ask for the list, if it is one, and if it is time for it. Raises: what asking raises."""
        if self.stream is not None or time.monotonic() < self._renewed + RENEWED_SECONDS:
            return
        found: Any = await call(self._ask, seconds=seconds)
        if isinstance(found, Kind):
            raise OptionError("a Kind comes from a method without async")
        before, self._keys = self._keys, frozenset(map(key_of, found))
        self._renewed = time.monotonic()
        for key in self._keys ^ before:
            self._changed(key)

    def seen(self, source: Stream, delta: Delta) -> None:  # noqa: ARG002  a subscriber is told by whom
        self._changed(delta.key)

    def advanced(self, source: Stream) -> None:
        """The streams of all objects tell the same."""

    def restored(self, source: Stream) -> None:
        """So do they of this."""
