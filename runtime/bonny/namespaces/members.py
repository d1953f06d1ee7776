"""Members: the namespaces that a running operator watches, by their labels.

One task for each namespace that is selected: it opens the streams, lets the namespace take part once the operator may
read all of it, waits until it is no longer selected, and closes the streams again. A namespace that is not readable yet
does not hold up the others.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, cast

from ..client.errors import NotFound
from ..core.store import Delta
from ..core.watch import ErrorKind
from ..engine.stream import Stream
from ..errors import BonnyError
from ..extras import ExtraRun
from ..kinds import Kind
from ..run.supervisor import Supervised, cancelled, first_of
from .streams import NamespaceStreams

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from ..run.process import Process

NAMESPACE: Final = Kind("v1", "Namespace")
# Namespaces whose first lists are read at the same time: a start with a thousand must not flood the API server.
JOINING_AT_ONCE: Final = 20
# Handlers that run when a namespace leaves have twice their default timeout to end; then the streams are closed anyway.
LEAVE_SECONDS: Final = 120.0
LOOK_SECONDS: Final = 0.05

log = logging.getLogger("bonny.namespaces")


class Member:
    """One namespace that is or was selected. A subscriber of its streams, to know when they advance."""

    def __init__(self, streams: NamespaceStreams, name: str, uid: str) -> None:
        self.name, self.uid = name, uid
        self.left, self.advance = asyncio.Event(), asyncio.Event()
        self.joined = self.leaving = False
        self.tasks: list[Supervised] = []
        self.joined_streams = streams.within(name)
        self.parts = [(router, self.joined_streams.followed(router)) for router in streams.routers]
        """The routers, each with the streams that it follows here."""

    @property
    def streams(self) -> list[Stream]:
        """Its streams."""
        return list(self.joined_streams)

    @property
    def state(self) -> str:
        """joining, joined or leaving."""
        return "leaving" if self.leaving else "joined" if self.joined else "joining"

    def seen(self, stream: Stream, delta: Delta) -> None:
        """The routers see it, too."""

    def advanced(self, _: Stream) -> None:
        """A list may be complete."""
        self.advance.set()

    def restored(self, stream: Stream) -> None:
        """The routers forget versions."""


class NamespacesRun(ExtraRun):
    """The namespaces with the labels of `selector` in one run of `process`."""

    def __init__(self, process: Process, selector: str) -> None:
        self._process, self._selector = process, selector
        self._streams = cast("NamespaceStreams", process.streams)
        self._selected = self._streams.of(Kind("v1", "Namespace", label_selector=selector, metadata_only=True), None)
        self._selected.subscribe(self)
        self.lasting = (self,)
        self.streams: list[Stream] = []
        """The streams of the namespaces that take part."""

        self.members: dict[str, Member] = {}
        self._wanted: dict[str, str] = {}
        """UIDs of the selected namespaces by name."""

        self.changes = {"joined": 0, "left": 0}
        self._changed, self._at_once = asyncio.Event(), asyncio.Semaphore(JOINING_AT_ONCE)

    def __str__(self) -> str:
        return "namespaces"

    # --- the stream of namespaces ---

    def seen(self, _: Stream, delta: Delta) -> None:
        """A namespace got or lost the labels, or is gone."""
        if delta.new is None:
            self._wanted.pop(delta.key.name, None)
        else:
            self._wanted[delta.key.name] = delta.new.meta.uid
        self._changed.set()

    def advanced(self, stream: Stream) -> None:
        """Nothing waits for that."""

    def restored(self, stream: Stream) -> None:
        """The next list shows the selected ones."""

    # --- joining and leaving ---

    async def run(self) -> None:
        """Let namespaces join and leave until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                for member in self.members.values():
                    if self._wanted.get(member.name) != member.uid:
                        member.left.set()
                for name, uid in self._wanted.items():
                    if name not in self.members:
                        member = self.members[name] = Member(self._streams, name, uid)
                        group.create_task(self._take_part(member), name=f"namespace {name}")
                await self._changed.wait()

    async def _take_part(self, member: Member) -> None:
        deleted = False
        try:
            await first_of(self._join(member), member.left.wait())
            await member.left.wait()
            deleted = await self._end(member)
        finally:
            closed = set(member.streams)
            self.streams = [stream for stream in self.streams if stream not in closed]
            await cancelled([task.task for task in member.tasks])
            for router, followed in member.parts:
                router.leave(member.name, followed, deleted=deleted)
            self._streams.close(member.joined_streams)
            for worker in self._process.workers:
                worker.paused -= {key for key in worker.paused if worker.router.item(key) is None}
            if member.joined:
                self.changes["left"] += 1
                log.info("namespace left", extra={"namespace": member.name, "deleted": deleted})
            del self.members[member.name]
            self._changed.set()

    async def _join(self, member: Member) -> None:
        began = time.monotonic()
        for router, followed in member.parts:
            router.prepare(followed)
        async with self._at_once:
            for stream in member.streams:
                stream.subscribe(member)
            member.tasks = [Supervised(stream) for stream in member.streams]
            await asyncio.gather(*(stream.wait_until_synced() for stream in member.streams))
        waiting = list(member.parts)
        while waiting:
            member.advance.clear()
            for part in [part for part in waiting if _is_readable(part[1].streams)]:
                waiting.remove(part)
                await part[0].join(member.name, part[1])
            if waiting:
                await member.advance.wait()
        self._streams.names.append(member.name)
        self.streams += member.streams
        member.joined = True
        self.changes["joined"] += 1
        objects, seconds = sum(len(stream.store) for stream in member.streams), time.monotonic() - began
        extra = {"namespace": member.name, "objects": objects, "seconds": round(seconds, 3)}
        log.info("namespace joined", extra=extra)

    async def _end(self, member: Member) -> bool:
        """Let running reconciles end. Returns: whether the namespace was deleted."""
        member.leaving = True
        if member.joined:
            self._streams.names.remove(member.name)
        for router, _ in member.parts:
            router.hide(member.name)
        ends = time.monotonic() + LEAVE_SECONDS
        while any(router.is_working(member.name) for router, _ in member.parts) and time.monotonic() < ends:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        try:
            live = await self._process.client.get(NAMESPACE, member.name)
        except NotFound:
            return True
        except BonnyError as error:
            extra = {"namespace": member.name, "error": str(error)}
            log.warning("unknown whether a namespace was deleted or lost its labels", extra=extra)
            return False
        return bool(live["metadata"]["uid"] != member.uid)

    # --- for the probes, the log and the metrics ---

    def started(self) -> dict[str, object]:
        return {"watches": f"namespaces with {self._selector}"}

    def problems(self) -> tuple[Sequence[str], Sequence[str]]:
        members = list(self.members.values())
        joined = sum(member.state == "joined" for member in members)
        return [
            f"namespaces with {self._selector}: {joined}",
            *(_note(member) for member in members if not member.joined),
        ], ()

    def families(self) -> Iterator[Metric]:
        from ..telemetry.prometheus import counter, gauge  # noqa: PLC0415  imported by the first scrape

        states = [member.state for member in self.members.values()]
        counts = {(state,): states.count(state) for state in ("joining", "joined", "leaving")}
        yield gauge("bonny_namespaces", "Namespaces that are selected by their labels, by state.", ("state",), counts)
        changes = {(change,): number for change, number in self.changes.items()}
        text = "Namespaces that joined, and that left again."
        yield counter("bonny_namespace_changes_total", text, ("change",), changes)
        by_resource: dict[tuple[str, ...], list[Stream]] = {}
        for stream in (stream for member in self.members.values() for stream in member.streams):
            by_resource.setdefault((stream.kind.resource,), []).append(stream)
        for name, text, value in (
            ("streams", "Streams in these namespaces.", lambda _: 1),
            ("streams_failing", "Streams in these namespaces that fail.", lambda of: of.error is not None),
            ("objects", "Objects in memory of these namespaces.", lambda of: len(of.store)),
            ("bytes", "Bytes of the objects in memory of these namespaces.", lambda of: of.store.bytes),
        ):
            samples = {labels: sum(map(value, streams)) for labels, streams in by_resource.items()}
            yield gauge(f"bonny_namespace_{name}", text, ("resource",), samples)


def _is_readable(streams: Iterable[Stream]) -> bool:
    """Whether each stream is in sync, or its kind is missing in the whole cluster."""
    return all(
        stream.synced or (stream.error is not None and stream.error.kind is ErrorKind.MISSING) for stream in streams
    )


def _note(member: Member) -> str:
    blocked = [stream for stream in member.streams if stream.error is not None]
    why = f", {blocked[0]}: {blocked[0].error.kind.value}" if blocked and blocked[0].error else ""
    return f"namespace {member.name}: {member.state}{why}"
