"""Streams: the kinds that one run of an operator follows; controllers and extras share equal streams."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..client.api import Client
from ..controller import Controller
from ..engine.router import Router
from ..engine.stream import Stream
from ..kinds import Kind, Owned
from ..operator import Operator
from ..resource import MANAGED_BY
from ..servers.visitor import Namespaces

log = logging.getLogger("bonny.run.streams")


class Streams:
    """The shared streams of `operator`, which watches `namespaces`."""

    def __init__(self, operator: Operator, namespaces: Namespaces, on_restore: Callable[[Stream], None]) -> None:
        """`on_restore` is called with the stream that noticed that the server was restored from a backup."""
        self.client: Client
        """Set before the first stream is made."""

        self._operator, self._namespaces, self._on_restore = operator, namespaces, on_restore
        self._streams: dict[tuple[object, ...], Stream] = {}

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams.values())

    def of(self, kind: Kind, namespace: str | None) -> Stream:
        """The stream of a kind in a namespace, None for all."""
        name = (kind.api_version, kind.plural, namespace, kind.label_selector, kind.field_selector, kind.metadata_only)
        if name not in self._streams:
            stream = Stream(self.client, kind, namespace=namespace, options=self._operator.watch_options)
            stream.on_restore = self._on_restore
            self._streams[name] = stream
        return self._streams[name]

    def router(self, controller: type[Controller[Any]], kind: Kind) -> Router:
        """A router for a kind of a controller, with the streams of what it owns and refers to."""
        return Router(
            primary=self._watched(kind),
            owned={owned: self._watched(self._ours(owned)) for owned in controller.owns},
            related={related: self._watched(related) for related in controller.related},
            on_status=controller.on_status,
        )

    def _watched(self, kind: Kind) -> list[Stream]:
        """The streams of a kind: one, or one for each watched namespace."""
        everywhere = kind.namespaced and kind.namespace is None
        return [self.of(kind, each) for each in (self._namespaces if everywhere else (kind.namespace,))]

    def _ours(self, owned: Owned) -> Owned:
        """Select the objects that this operator manages: the cluster's other Secrets stay out of its memory."""
        ours = f"{MANAGED_BY}={self._operator.name}"
        return replace(owned, label_selector=f"{owned.label_selector},{ours}" if owned.label_selector else ours)


async def expire_tombstones(routers: Sequence[Router], *, seconds: float) -> None:
    """On a standby: keep deletions for as long as it may take to become the leader, and no longer."""
    while True:
        await asyncio.sleep(seconds / 2)
        for router in routers:
            router.remove_tombstones(before=time.monotonic() - seconds)


async def report_first_sync(streams: Collection[Stream]) -> None:
    """Wait until every stream is in sync or blocked, then log that."""
    began = time.monotonic()
    await asyncio.gather(*(stream.wait_until_synced() for stream in streams))
    seconds = round(time.monotonic() - began, 3)
    objects, blocked = sum(len(stream.store) for stream in streams), sum(stream.blocked for stream in streams)
    log.info("in sync", extra={"objects": objects, "seconds": seconds, "blocked": blocked})
