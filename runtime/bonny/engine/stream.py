"""Stream: follows the objects of one kind and keeps them in a store; the shell around `core.watch`.

You need it for another consumer of a kind: `subscribe`. Two consumers of the same kind, namespace and selectors share
one stream and one store (`bonny.run.process` sees to that).

It never ends by itself: whatever the server says or does not say, it waits and goes on, and says so in `trouble`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from ..client.api import Client, path_of, retry_after
from ..client.errors import AnswerTooLarge, Unreachable, missing_rule
from ..client.pages import AS_METADATA
from ..core import watch
from ..core.framing import Lines, LineTooLong
from ..core.store import Delta, Store
from ..errors import UsageError
from ..kinds import Kind
from ..telemetry import execute, lifetime

# Trouble of these kinds is nobody's to mend: streams end early when a client or the CPU is slow, and versions expire.
ORDINARY = (watch.ErrorKind.EXPIRED, watch.ErrorKind.SHORT, watch.ErrorKind.SILENT)
# Trouble of these kinds lasts until a person acts; the rest of the operator does not wait for it.
BLOCKING = (watch.ErrorKind.FORBIDDEN, watch.ErrorKind.MISSING)

LONGEST_REFUSAL = 64 * 1024
REFUSAL_SECONDS = 30.0
# After so many differences, each counted once more for 4 KiB of it, others get their turn on the loop: a sweep can be
# as large as the store, and telling whether a ConfigMap changed takes decoding it. About 5 ms.
DELTAS_AT_ONCE = 250
WEIGHT_BYTES = 4096
PARTIAL = ("meta.k8s.io/v1", "PartialObjectMetadata")

log = logging.getLogger("bonny.engine.stream")


class Subscriber(Protocol):
    """Gets every difference of a store, in order, on the loop."""

    def seen(self, stream: Stream, delta: Delta) -> None:
        """One object was added, changed, re-created or removed."""

    def advanced(self, stream: Stream) -> None:
        """The store has reached a newer version, or a complete list."""

    def restored(self, stream: Stream) -> None:
        """The server's versions went backwards: nothing that is remembered by version holds any longer."""


class Stream:
    """One kind in one namespace (None: all of them)."""

    def __init__(self, client: Client, kind: Kind, *, namespace: str | None, options: watch.WatchOptions) -> None:
        self.kind = kind
        self.namespace = kind.namespace or namespace if kind.namespaced else None
        self.store = Store()
        self.last_contact = time.monotonic()
        """When the server last answered, or a wait was last begun (monotonic seconds)."""
        self.lists = 0
        """How many complete lists there were; all but the first were needed because a watch could not go on."""

        self.errors: Counter[watch.ErrorKind] = Counter()
        """How often trouble of each kind began."""

        self._client = client
        self._options = options
        self._path = path_of(kind, self.namespace)
        self._selectors = {"labelSelector": kind.label_selector, "fieldSelector": kind.field_selector}
        self._subscribers: list[Subscriber] = []
        shown = PARTIAL if kind.metadata_only else kind.gvk
        self._stream = watch.start(self._options, of=shown).stream
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._ran = False
        self._distrusted = False
        self._relists = False
        self.on_restore: Callable[[Stream], None] = _ignore
        """Called when this stream notices by itself that the server's versions went backwards."""

        self._told = {"stream": str(self)}

    def __str__(self) -> str:
        return f"{self.kind.resource} in {self.namespace}" if self.namespace else self.kind.resource

    @property
    def narrowed(self) -> bool:
        """Whether an object can leave this stream without being deleted: its labels or fields changed."""
        return bool(self.kind.label_selector or self.kind.field_selector)

    @property
    def synced(self) -> bool:
        """A complete list is in the store."""
        return self._stream.synced

    @property
    def current(self) -> bool:
        """Whether the store shows what the server shows, but for what is on its way (`watch.is_current`)."""
        return watch.is_current(self._stream, now=time.monotonic())

    @property
    def opened(self) -> float | None:
        """Since when the watch is open (monotonic seconds), while it is."""
        state = self._stream.state
        return state.opened if isinstance(state, watch.Watching) else None

    @property
    def version(self) -> int:
        """The newest version that the store is known to hold."""
        return self._stream.version

    @property
    def error(self) -> watch.StreamError | None:
        """What is wrong, while it is."""
        return self._stream.error

    @property
    def blocked(self) -> bool:
        """Whether it waits for a person: a missing CRD or permission."""
        return self.error is not None and self.error.kind in BLOCKING

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell `subscriber` of every difference from now on."""
        self._subscribers.append(subscriber)

    async def wait_until_synced(self) -> None:
        """Return once it is synced, or blocked."""
        while not (self.synced or self.blocked):
            self._changed.clear()
            await self._changed.wait()

    def list_again(self) -> None:
        """Let the next `run` list everything again, and trust what was told before. Only while it does not run."""
        self._ran = False

    def distrust(self) -> None:
        """List everything again, and trust nothing that was told before: another stream noticed a restored server."""
        self._distrusted = True
        if self._following is not None:
            self._following.cancel()

    async def run(self) -> None:
        """Follow until cancelled. Run again after an error, it trusts nothing that it told its subscribers before."""
        task = asyncio.current_task()
        with lifetime("bonny.watcher", self._told):
            while True:
                self._following = asyncio.create_task(self._follow(), name=str(self))
                try:
                    await self._following
                except asyncio.CancelledError:
                    if not self._distrusted or (task is not None and task.cancelling()):
                        raise
                finally:
                    self._following = None

    async def _follow(self) -> None:
        self._relists = self._ran or self._distrusted
        self._ran, self._distrusted = True, False
        begun = watch.again(self._stream, self._options, distrust=self._relists)
        self._stream, command = begun.stream, begun.command
        while True:
            match command:
                case watch.ListPage() as request:
                    command = await self._list(request)
                case watch.Watch() as request:
                    command = await self._watch(request)
                case watch.Wait(seconds, renew_credentials):
                    await self._wait(seconds, renew=renew_credentials)
                    command = await self._step(watch.Tick())
                case None:
                    # A watch ended without a decision: cannot be, and must not spin.
                    command = await self._step(watch.Broken("the watch ended for no known reason"))

    # --- performing ---------------------------------------------------------------------------------------------------

    async def _list(self, request: watch.ListPage) -> watch.Command:
        query = {**self._selectors, "limit": str(request.limit), "continue": request.continue_token}
        try:
            answer = await self._client.exchange(
                "GET", self._path, query=query, headers=self._headers("list"), limit_bytes=request.bound
            )
        except AnswerTooLarge:
            return await self._step(watch.TooLarge())
        except (Unreachable, UsageError) as error:
            return await self._step(watch.Broken(str(error)))
        return await self._step(watch.Reply(answer.status, answer.body, retry_after(answer.headers)))

    async def _watch(self, request: watch.Watch) -> watch.Command:
        query = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": request.version,
            "timeoutSeconds": f"{request.timeout:.0f}",
        }
        limit = asyncio.timeout(request.longest)
        execute("bonny.watcher.watch.started", {}, self._told)
        try:
            async with (
                limit,
                self._client.stream(
                    self._path, query=query, headers=self._headers("watch"), read_timeout=request.deadline
                ) as answer,
            ):
                if answer.status != 200:
                    execute("bonny.watcher.watch.failed", {}, {**self._told, "status": answer.status})
                    async with asyncio.timeout(REFUSAL_SECONDS):
                        body = await _first(answer.chunks)
                    return await self._step(watch.Reply(answer.status, body, retry_after(answer.headers)))
                execute("bonny.watcher.watch.succeeded", {}, self._told)
                await self._step(watch.Heard())
                lines = Lines()
                async for chunk in answer.chunks:
                    execute("bonny.watcher.chunk.received", {"bytes": len(chunk)}, self._told)
                    for line in lines.feed(chunk):
                        command = await self._step(watch.Line(line))
                        if command is not None:
                            ended = "bonny.watcher.watch.failed" if self.error else "bonny.watcher.watch.finished"
                            execute(ended, {}, self._told)
                            return command
            execute("bonny.watcher.watch.finished", {}, self._told)
            return await self._step(watch.Closed())
        except TimeoutError:
            # A watch that lives longer than the server was asked for ends like any other, if it was opened at all.
            outlived = limit.expired() and self.opened is not None
            execute("bonny.watcher.watch.timedout", {}, self._told)
            return await self._step(watch.Closed() if outlived else watch.Silent())
        except (Unreachable, UsageError, LineTooLong) as error:
            execute("bonny.watcher.watch.failed", {}, {**self._told, "error": error})
            return await self._step(watch.Broken(str(error)))

    def _headers(self, verb: str) -> dict[str, str]:
        return {"Accept": AS_METADATA[verb]} if self.kind.metadata_only else {}

    async def _wait(self, seconds: float, *, renew: bool) -> None:
        await asyncio.sleep(seconds)
        if renew:
            try:
                await self._client.connection(renew=True)
            except UsageError as error:
                log.warning("cannot read credentials", extra={"stream": str(self), "error": str(error)})

    async def _step(self, event: watch.WatchInput) -> watch.Command:
        """Decide, and tell the subscribers what changed; with pauses when that is much."""
        self.last_contact = now = time.monotonic()
        before = self._stream
        outcome = watch.step(before, event, now=now, chance=random.random(), options=self._options)
        # Subscribers tell a first list from later ones by `synced`, so it turns true only after they saw the changes.
        told = 0
        for change in outcome.changes:
            for delta in self._applied(change):
                for subscriber in self._subscribers:
                    subscriber.seen(self, delta)
                told += 1 + sum(len(item.raw) // WEIGHT_BYTES for item in (delta.old, delta.new) if item is not None)
                if told >= DELTAS_AT_ONCE:
                    told = 0
                    await asyncio.sleep(0)
        self._stream = outcome.stream
        if before.error != outcome.stream.error:
            self._report(before.error, outcome.stream.error)
        complete = bool(outcome.changes) and isinstance(outcome.changes[-1], watch.Sweep)
        if complete:
            self.lists += 1
        if complete or before.version != outcome.stream.version:
            for subscriber in self._subscribers:
                subscriber.advanced(self)
        if before.error != outcome.stream.error or before.synced != outcome.stream.synced:
            self._changed.set()
        if self.store.rewritten:
            self.store.rewritten = False
            return await self._step(watch.Rewritten())
        return outcome.command

    def _applied(self, change: watch.Change) -> Iterable[Delta]:
        if isinstance(change, watch.Begin) and change.restored:
            # Where this stream was told to trust nothing, its list says nothing about the server.
            noticed, self._relists = not self._relists, False
            for subscriber in self._subscribers:
                subscriber.restored(self)
            if noticed:
                log.warning(
                    "versions went backwards: the API server was restored from a backup",
                    extra={"stream": str(self)},
                )
                self.on_restore(self)
        return self.store.apply(change)

    def _report(self, before: watch.StreamError | None, after: watch.StreamError | None) -> None:
        if after is None:
            execute("bonny.watcher.trouble.finished", {}, self._told)
            log.info("watch recovered", extra={"stream": str(self)})
            return
        extra = {"stream": str(self), "verb": after.verb, "status": after.status, "error": after.message}
        execute("bonny.watcher.trouble.started", {}, {**extra, "kind": after.kind.value})
        if after.kind is watch.ErrorKind.FORBIDDEN:
            verbs = ("get", "list", "watch")
            extra["missing_rule"] = missing_rule(group=self.kind.group, plural=self.kind.plural, verbs=verbs)
        repeated = before is not None and before.kind is after.kind
        if not repeated:
            self.errors[after.kind] += 1
        level = logging.DEBUG if repeated or after.kind in ORDINARY else logging.WARNING
        log.log(level, "watch failed", extra={**extra, "kind": after.kind.value})


def _ignore(_: Stream) -> None: ...


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """The beginning of a body: a Status fits into it, and whatever else a proxy sends is not kept."""
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > LONGEST_REFUSAL:
            break
    return body[:LONGEST_REFUSAL]
