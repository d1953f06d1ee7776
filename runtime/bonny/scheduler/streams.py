"""Streams: the nodes and pods of a cluster as schedulers see them, the cache that they fill, and selections of both.

All schedulers of an operator share one cache, so each sees the decisions of the others at once.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..calling import call
from ..core.objects import UNREADABLE
from ..core.store import Delta
from ..engine.stream import Stream
from ..errors import InvalidObject, OptionError
from ..kinds import Kind
from ..resource import Key, key_of
from .assume import AssumeCache
from .views import PodView

if TYPE_CHECKING:
    from .server import SchedulerServer

NODE: Final = Kind("v1", "Node")
POD: Final = Kind("v1", "Pod")
# The interval at which lists of nodes and pods are requested again.
RENEWED_SECONDS: Final = 1.0

Follow: TypeAlias = Callable[[Kind], Stream]
"""Returns the stream of a kind in all namespaces, the same one for the same kind. The caller does not run it."""

Selection: TypeAlias = Kind | Iterable[Mapping[str, Any]]
Ask: TypeAlias = Callable[[], Selection | Awaitable[Selection]]

log = logging.getLogger("bonny.scheduler.streams")


class SchedulerStreams:
    """The streams of all nodes and all pods, and the cache. Create it before the streams run."""

    def __init__(self, follow: Follow) -> None:
        self.cache = AssumeCache()
        self.follow = follow
        self.nodes = follow(NODE)
        self.pods = follow(POD)
        self.listeners: list[SchedulerServer] = []
        """Each is called with changes of pods, after the cache was updated."""

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
        if pod is not None and self._is_readable(pod):
            self.cache.see_pod(pod)
            for listener in self.listeners:
                listener.pod_seen(pod)

    def advanced(self, source: Stream) -> None:  # noqa: ARG002  the signature of a subscriber
        for listener in self.listeners:
            listener.stream_advanced()

    def restored(self, source: Stream) -> None:  # noqa: ARG002
        for listener in self.listeners:
            listener.server_restored()

    def _is_readable(self, pod: PodView) -> bool:
        """Whether it can be decoded. The API server stores no other pods; but one bad object must not stop the rest."""
        try:
            _ = pod.decoded, *(shape(pod) for shape in self.cache.shapes)
        except (InvalidObject, *UNREADABLE):
            log.exception("a pod cannot be read", extra={"pod": str(pod.key)})
            return False
        return True


class Selected:
    """The objects of a kind that a scheduler selects: from a stream, or from a list that is requested again."""

    def __init__(self, ask: Ask, everything: Stream, *, follow: Follow, changed: Callable[[Key], None]) -> None:
        """`everything` is the stream of all objects of the kind. `changed` is called with the key of each object that
        enters or leaves the selection."""
        asked = None if inspect.iscoroutinefunction(ask) else ask()
        self.stream = follow(asked) if isinstance(asked, Kind) else None
        self.streams = list(filter(None, dict.fromkeys((everything, self.stream))))
        """The streams that must be current before a decision."""

        self._ask = ask
        self._changed = changed
        self._keys: frozenset[Key] = frozenset()
        self._renewed = float("-inf")
        for stream in self.streams[1:]:
            stream.subscribe(self)

    def __contains__(self, key: Key) -> bool:
        return key in self._keys if self.stream is None else self.stream.store.get(key) is not None

    async def renew(self, *, seconds: float) -> None:
        """Request the list again, when it is a list and is due. Raises: the errors of the request."""
        if self.stream is not None or time.monotonic() < self._renewed + RENEWED_SECONDS:
            return
        answer: Any = await call(self._ask, seconds=seconds)
        if isinstance(answer, Kind):
            raise OptionError("an async method cannot return a Kind: remove `async`, or return a list of objects")
        before, self._keys = self._keys, frozenset(map(key_of, answer))
        self._renewed = time.monotonic()
        for key in self._keys ^ before:
            self._changed(key)

    def seen(self, source: Stream, delta: Delta) -> None:  # noqa: ARG002  the signature of a subscriber
        self._changed(delta.key)

    def advanced(self, source: Stream) -> None:
        """Nothing to do: the stream of all objects reports it, too."""

    def restored(self, source: Stream) -> None:
        """Nothing to do: the stream of all objects reports it, too."""
