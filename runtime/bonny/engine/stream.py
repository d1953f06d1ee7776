"""Stream: lists and watches the objects of one kind and keeps them in a store; the I/O around `core.watch`.

Consumers of the same kind, namespace and selectors share one stream and one store (`bonny.run.streams`).

A stream never ends by itself. After an error it waits and tries again; `error` says why until it works again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Protocol

from ..client.api import Client
from ..client.errors import AnswerTooLarge, Unreachable, missing_rule
from ..client.pages import AS_METADATA, page_request
from ..client.request import path_of, retry_after
from ..core import watch
from ..core.framing import Lines, LineTooLong
from ..core.store import Delta, Store
from ..errors import UsageError
from ..kinds import Kind, builtin, correction
from ..telemetry import execute, lifetime

# Errors that need no action.
ORDINARY = (watch.ErrorKind.EXPIRED, watch.ErrorKind.SHORT, watch.ErrorKind.SILENT)
# Errors that last until a person acts; the rest of the operator does not wait for such a stream.
BLOCKING = (watch.ErrorKind.FORBIDDEN, watch.ErrorKind.MISSING)

LONGEST_REFUSAL = 64 * 1024
REFUSAL_SECONDS = 30.0
# Yield to the event loop after differences have taken this long.
SECONDS_AT_ONCE = 0.005
PARTIAL = ("meta.k8s.io/v1", "PartialObjectMetadata")

log = logging.getLogger("bonny.engine.stream")


class Subscriber(Protocol):
    """Receives every difference of a store, in order, on the event loop."""

    def seen(self, stream: Stream, delta: Delta) -> None:
        """One object was added, changed, re-created or removed."""

    def advanced(self, stream: Stream) -> None:
        """The store has reached a newer version, or a list is complete."""

    def restored(self, stream: Stream) -> None:
        """The server's versions went backwards: everything that is remembered by version is invalid."""


class Stream:
    """The objects of one kind in one namespace, or in all of them (None)."""

    def __init__(self, client: Client, kind: Kind, *, namespace: str | None, options: watch.WatchOptions) -> None:
        self.kind = kind
        self.namespace = kind.namespace or namespace if kind.namespaced else None
        self.store = Store()
        self.last_contact = time.monotonic()
        """When the server last answered, or the last wait began (monotonic seconds)."""
        self.lists = 0
        """Complete lists so far; each after the first means that a watch could not be resumed."""

        self.errors: Counter[watch.ErrorKind] = Counter()
        """How often an error of each kind began."""

        self._client = client
        self._options = options
        self._subscribers: list[Subscriber] = []
        shown = PARTIAL if kind.metadata_only else kind.gvk
        self._state = watch.WatchState(limit=min(options.page_size, watch.LIST_PAGE), of=shown)
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._ran = False
        self._metadata = {"stream": str(self)}
        self._distrusted = False
        self._relists = False
        self.on_restore: Callable[[Stream], None] = lambda _: None
        """Called when this stream itself notices that the API server's versions went backwards."""

    def __str__(self) -> str:
        return f"{self.kind.resource} in {self.namespace}" if self.namespace else self.kind.resource

    @property
    def narrowed(self) -> bool:
        """Whether an object can leave this stream without being deleted: its labels or fields changed."""
        return bool(self.kind.label_selector or self.kind.field_selector)

    @property
    def synced(self) -> bool:
        """A complete list is in the store."""
        return self._state.synced

    @property
    def current(self) -> bool:
        """Whether the store is up to date, apart from events in transit (`watch.is_current`)."""
        return watch.is_current(self._state, now=time.monotonic())

    @property
    def opened(self) -> float | None:
        """When the watch was opened (monotonic seconds); None while none is open."""
        phase = self._state.phase
        return phase.opened if isinstance(phase, watch.Watching) else None

    @property
    def version(self) -> int:
        """The newest resource version that the store holds."""
        return self._state.version

    @property
    def error(self) -> watch.StreamError | None:
        """The current error; None while the stream works."""
        return self._state.error

    @property
    def blocked(self) -> bool:
        """Whether it needs a person's action: a missing CRD or permission."""
        return self.error is not None and self.error.kind in BLOCKING

    def subscribe(self, subscriber: Subscriber) -> None:
        """Send every difference to `subscriber` from now on."""
        self._subscribers.append(subscriber)

    async def wait_until_synced(self, *, first_page: bool = False) -> None:
        """Return once the stream is synced or blocked; with `first_page` also once it has objects."""
        while not (self.synced or self.blocked or (first_page and self.store)):
            self._changed.clear()
            await self._changed.wait()

    def prepare_relist(self) -> None:
        """Make the next `run` list everything again and report only differences. Only while it does not run."""
        self._ran = False

    def distrust(self) -> None:
        """List everything again, and trust no earlier state: another stream noticed that the server was restored."""
        self._distrusted = True
        if self._following is not None:
            self._following.cancel()

    async def run(self) -> None:
        """List and watch until cancelled. A second run, after an exception, reports everything again."""
        task = asyncio.current_task()
        with lifetime("bonny.watcher", self._metadata):
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
        begun = watch.start(self._state, self._options, distrust=self._relists)
        self._state, command = begun.state, begun.command
        while True:
            match command:
                case watch.ListPage() as request:
                    command = await self._list(request)
                case watch.Watch() as request:
                    command = await self._watch(request)
                case watch.Pause(seconds, renew_credentials):
                    await self._wait(seconds, renew=renew_credentials)
                    command = await self._step(watch.Tick())
                case None:
                    # Every end of a watch decides on a command. Were there none, this loop must not spin.
                    command = await self._step(watch.Broken("the watch ended for an unknown reason"))

    # --- performing ---

    async def _list(self, page: watch.ListPage) -> watch.Command:
        if not page.limit:
            log.warning("tokens of pages always expire: listing all objects at once", extra=self._metadata)
        request = page_request(
            self.kind, self.namespace, limit=page.limit, token=page.continue_token, limit_bytes=page.bound
        )
        try:
            answer = await self._client.exchange(request)
        except AnswerTooLarge:
            return await self._step(watch.TooLarge())
        except (Unreachable, UsageError) as error:
            return await self._step(watch.Broken(str(error)))
        return await self._step(watch.Reply(answer.status, answer.body, retry_after(answer.headers)))

    async def _watch(self, request: watch.Watch) -> watch.Command:
        selected = {"labelSelector": self.kind.label_selector, "fieldSelector": self.kind.field_selector}
        since = {"resourceVersion": request.version, "timeoutSeconds": f"{request.timeout:.0f}"}
        query = {**selected, "watch": "true", "allowWatchBookmarks": "true", **since}
        headers = {"Accept": AS_METADATA["watch"]} if self.kind.metadata_only else {}
        path, limit = path_of(self.kind, self.namespace), asyncio.timeout(request.deadline)
        execute("bonny.watcher.watch.started", {}, self._metadata)
        try:
            async with limit, self._client.stream(path, query=query, headers=headers) as answer:
                if answer.status != 200:
                    execute("bonny.watcher.watch.failed", {}, {**self._metadata, "status": answer.status})
                    async with asyncio.timeout(REFUSAL_SECONDS):
                        body = await _first(answer.chunks)
                    return await self._step(watch.Reply(answer.status, body, retry_after(answer.headers)))
                execute("bonny.watcher.watch.succeeded", {}, self._metadata)
                await self._step(watch.Opened())
                lines = Lines()
                async for chunk in answer.chunks:
                    execute("bonny.watcher.chunk.received", {"bytes": len(chunk)}, self._metadata)
                    for line in lines.feed(chunk):
                        command = await self._step(watch.Line(line))
                        if command is not None:
                            ended = "bonny.watcher.watch.failed" if self.error else "bonny.watcher.watch.finished"
                            execute(ended, {}, self._metadata)
                            return command
            execute("bonny.watcher.watch.finished", {}, self._metadata)
            return await self._step(watch.Closed())
        except TimeoutError:
            # A watch that outlives the time that the server was asked for ends like any other, if it was open at all.
            outlived = limit.expired() and self.opened is not None
            execute("bonny.watcher.watch.timedout", {}, self._metadata)
            return await self._step(watch.Closed() if outlived else watch.Silent())
        except (Unreachable, UsageError, LineTooLong) as error:
            execute("bonny.watcher.watch.failed", {}, {**self._metadata, "error": error})
            return await self._step(watch.Broken(str(error)))

    async def _wait(self, seconds: float, *, renew: bool) -> None:
        await asyncio.sleep(seconds)
        if renew:
            try:
                await self._client.connection(renew=True)
            except UsageError as error:
                log.warning("cannot read credentials", extra={**self._metadata, "error": str(error)})

    async def _step(self, event: watch.WatchInput) -> watch.Command:
        """Decide, and send the changes to the subscribers, yielding to the event loop between many of them."""
        self.last_contact = now = time.monotonic()
        before = self._state
        outcome = watch.step(before, event, now=now, chance=random.random(), options=self._options)
        # Subscribers use `synced` to recognise the first list, so it becomes true only after they got its changes.
        began = now
        for change in outcome.changes:
            for delta in self._applied(change):
                for subscriber in self._subscribers:
                    subscriber.seen(self, delta)
                if time.monotonic() - began >= SECONDS_AT_ONCE:
                    await asyncio.sleep(0)
                    began = time.monotonic()
        self._state = outcome.state
        if before.error != outcome.state.error:
            self._report(before.error, outcome.state.error)
        complete = bool(outcome.changes) and isinstance(outcome.changes[-1], watch.Sweep)
        if complete or before.version != outcome.state.version:
            for subscriber in self._subscribers:
                subscriber.advanced(self)
        self._changed.set()
        if self.store.rewritten:
            self.store.rewritten = False
            return await self._step(watch.Rewritten())
        return outcome.command

    def _applied(self, change: watch.Change) -> Iterable[Delta]:
        if isinstance(change, watch.Sweep):
            self.lists += 1
        if isinstance(change, watch.Begin) and change.restored:
            # A stream that `distrust` made list again proves nothing about the server by that list.
            noticed, self._relists = not self._relists, False
            for subscriber in self._subscribers:
                subscriber.restored(self)
            if noticed:
                log.warning("versions went backwards: the API server was restored from a backup", extra=self._metadata)
                self.on_restore(self)
        return self.store.apply(change)

    def _report(self, before: watch.StreamError | None, after: watch.StreamError | None) -> None:
        if after is None:
            execute("bonny.watcher.failing.finished", {}, self._metadata)
            log.info("watch recovered", extra=self._metadata)
            return
        extra = {**self._metadata, "verb": after.verb, "status": after.status, "error": after.message}
        execute("bonny.watcher.failing.started", {}, {**extra, "kind": after.kind.value})
        if after.kind is watch.ErrorKind.FORBIDDEN:
            verbs = ("get", "list", "watch")
            extra["missing_rule"] = missing_rule(group=self.kind.group, plural=self.kind.plural, verbs=verbs)
        if after.kind is watch.ErrorKind.MISSING and not builtin(self.kind.api_version, self.kind.kind):
            extra["then"] = correction(*self.kind.gvk) or (
                f"the CRD {self.kind.resource} is not installed: `invoke install` installs the CRDs of this operator"
            )
        repeated = before is not None and before.kind is after.kind
        if not repeated:
            self.errors[after.kind] += 1
        level = logging.DEBUG if repeated or after.kind in ORDINARY else logging.WARNING
        log.log(level, "watch failed", extra={**extra, "kind": after.kind.value})


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """The beginning of a body: long enough for a Status; the rest of a proxy's page is dropped."""
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > LONGEST_REFUSAL:
            break
    return body[:LONGEST_REFUSAL]
