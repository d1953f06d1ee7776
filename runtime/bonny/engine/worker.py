"""Worker: takes the keys of one controller and kind from the queue and reconciles each through the pipeline.

Of a key it first calls `delete` for each object of this name that is gone; `core.records.decide` decides the rest.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

from ..calling import HandlerTimeout, as_failure, report, stopping, text_of
from ..client.api import Client
from ..client.errors import NotFound, Refusal, log_text_of
from ..controller import Controller, Restart
from ..core.handled import Handled, handled_state
from ..core.meters import ReconcileCounts
from ..core.objects import Item
from ..core.queue import Reason, Work
from ..core.records import Action, Tombstone, decide, is_paused, with_request
from ..errors import InvalidObject, Retry, Terminal, Throttled
from ..events import EventRecorder
from ..kinds import Kind
from ..pipeline import Pipeline
from ..resource import Key, Resource
from ..steps.finalizer import finalizers_of
from ..telemetry import tracing
from .context import ReconcileContext, Tasks
from .reconcile import Reconcile
from .router import Router, no_worker
from .slots import Slots

# A delete handler that still fails after an hour is reported, and given up.
DELETE_SECONDS: Final = 3600.0
# Upper bound for Retry-After: a system that asks for hours must not delay a key for longer than the backoff does.
LONGEST_ADVICE: Final = 300.0
# Handlers and requests end by their timeouts; a reconcile that lasts this much longer is stuck.
STUCK_SECONDS: Final = 120.0

log = logging.getLogger("bonny.engine.worker")


class Worker:
    """Up to `max_concurrent` reconciles at a time, never two of one key. Without a recorder, no events are sent."""

    def __init__(
        self,
        *,
        operator: str,
        group: str,
        controller: Controller[Any],
        kind: Kind,
        client: Client,
        recorder: EventRecorder | None,
        tasks: Tasks | None = None,
        router: Router,
        pipeline: Pipeline,
    ) -> None:
        self.name = type(controller).__name__
        self.kind = kind
        self.router = router
        self.handled = 0
        """Reconciles that succeeded, since the start."""
        self.meters = ReconcileCounts()
        self.max_concurrent = controller.max_concurrent
        self.restart = Restart(controller.restart)
        # The part that all reconciles of this worker share.
        self._context = partial(
            ReconcileContext,
            operator=operator,
            manager=f"{operator}/{self.name}",
            finalizer=controller.finalizer_of(operator=operator, group=group),
            client=client,
            router=router,
            periodic_tasks=tasks,
        )
        self._finalizers = frozenset(finalizers_of(type(controller), pipeline.steps, operator=operator, group=group))
        self._controller = controller
        controller.queues.append(router.queue)
        self._version = controller.version_for(kind.group, kind.version, kind.kind, default_group=group)
        self._client = client
        self._record = (lambda *_: None) if recorder is None else recorder.record
        self._pipeline = pipeline
        self._slots = Slots(router.queue, self._handle, count=self.max_concurrent, name=self.name)
        self.running = self._slots.running
        """As `Slots.running`."""

        self.paused: set[Key] = set()
        """Objects whose handlers rest because of an annotation."""

        self._actions: dict[Key, Action] = {}
        """The action of each key's reconcile in progress, once it is decided."""

    def __str__(self) -> str:
        return self.name

    # --- running ---

    def run(self) -> Coroutine[Any, Any, None]:
        """Reconcile keys until `stop`, then wait for the reconciles in progress, at most for `shutdown_timeout`.

        Cancelled, it cancels them first. Run again, it reconciles every object: another replica may have led meanwhile.
        Raises: what is a defect of the queue or of this class; errors of handlers are not.
        """
        # Here and not in the first step of the task: `stop` may be called before that.
        again = self._slots.ended.is_set()
        self._slots.ended.clear()
        return self._run(again=again)

    async def _run(self, *, again: bool) -> None:
        if again:
            await self.router.requeue_all()
        self._slots.defect = None
        stopping.set(self._slots.ended.is_set)
        settled = asyncio.create_task(self.router.wait_until_synced())
        settled.add_done_callback(self._begin)
        try:
            await self._slots.ended.wait()
            if self._slots.defect is not None:
                raise self._slots.defect
            if self.running:
                await asyncio.wait(list(self.running), timeout=self._controller.shutdown_timeout)
        finally:
            settled.cancel()
            self.router.wake = no_worker
            self.paused.clear()
            if cancelled := await self._slots.cancel():
                extra = {"controller": self.name, "count": cancelled}
                log.warning("cancelled running handlers: grace period exceeded", extra=extra)

    def _begin(self, settled: asyncio.Task[None]) -> None:
        """The streams are ready, or late: give out keys from now on."""
        if not settled.cancelled() and not self._slots.ended.is_set():
            self.router.wake = self._slots.wake
            self._slots.start()

    def stop(self) -> None:
        """Take no further key."""
        self._slots.stop()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held by a reconcile that should have ended long ago, so that nothing makes progress."""
        if len(self.running) < self.max_concurrent:
            return False
        return time.monotonic() - max(self.running.values()) > self._controller.timeout + STUCK_SECONDS

    # --- one key ---

    async def _handle(self, work: Work[Key]) -> None:
        key, queue, records, began = work.key, self.router.queue, self.router.records, time.monotonic()
        try:
            if self.router.own_writes.park(key, now=began):
                return
            self.meters.queued.observe(began - work.queued)
            for stone in records.tombstones(key):
                await self._settle_deletion(key, stone)
            item = self.router.item(key)
            if item is None:
                self.paused.discard(key)
                self.router.forget(key)
            elif not records.is_deleted(item.meta.uid):
                await self._settle_object(item, work)
        except BaseException as error:  # noqa: BLE001  whatever a handler raises, its key comes back; other keys go on
            failure = error if isinstance(error, Exception) else as_failure(error)
            await self._failed(work, failure, seconds=time.monotonic() - began)
        else:
            queue.done(key, now=time.monotonic())
        finally:
            self._actions.pop(key, None)
            # The key is given back, however the reconcile ended: after a cancellation this process may lead again.
            if queue.is_working(key):
                queue.retry(key, now=time.monotonic(), chance=0.0 if self._slots.ended.is_set() else random.random())
        self.meters.seconds.observe(time.monotonic() - began, tracing.observed.get())

    async def _settle_object(self, item: Item, work: Work[Key]) -> None:
        """Reconcile the object if there is a reason to, and set the key's timer."""
        key = work.key  # not `item.key`: that makes a tuple, which the record would keep
        records, state = self.router.records, self._state(item)
        action = decide(state, records.get(key), work.reasons, finalizers=self._finalizers)
        self._note_pause(key, paused=action is not None and is_paused(state.annotations, action))
        if action is None:
            return
        record = records.of(key)
        record.stopped = None
        reasons = with_request(work.reasons, state, record)
        epoch = records.epoch
        try:
            axn = await self._process(action, key, item, reasons, tries=work.tries)
        except Terminal:
            if records.epoch == epoch:
                record.stopped = state
            raise
        if axn.applied is not None:
            self.router.own_writes.want((), owner=key)
        # While the list of a restored server is incomplete, an equal generation may hide different content.
        steady = records.epoch == epoch and not self.router.restoring
        if axn.waiting is not None:
            self.meters.waiting += 1
        else:
            self.handled += 1
            self.meters.requeued_after += axn.requeue_seconds is not None
            if steady or self.router.item(key) is item:
                record.handled = state if axn.shown is item else self._state(axn.shown)
        record.applied = record.applied or None
        if axn.outdated:
            # Queued while it is being worked on, so it comes back once the streams show what was written.
            self.router.queue.add(key, Reason.CHILD, now=time.monotonic())
        # The timer that a handler asked for stays if a step halts before the handler could ask again.
        unasked = axn.halted and self.router.queue.has_timer(key)
        finalized = action is Action.FINALIZE and axn.waiting is None
        if (wait := axn.requeue_wait()) is not None:
            self.router.queue.set_timer(key, Reason.REQUEUE, at=time.monotonic() + wait)
        elif self._controller.reconcile_every < math.inf and not (finalized or unasked):
            # Up to 10 % earlier, to avoid a thundering herd after a restart.
            wait = self._controller.reconcile_every * (1 - 0.1 * random.random())
            self.router.queue.set_timer(key, Reason.RESYNC, at=time.monotonic() + wait)

    def _note_pause(self, key: Key, *, paused: bool) -> None:
        """Log the beginning of a pause, and count the paused objects."""
        if paused and key not in self.paused:
            self.paused.add(key)
            log.warning("paused", extra={"controller": self.name, "object": str(key)})
        elif not paused:
            self.paused.discard(key)

    def _state(self, item: Item) -> Handled:
        return handled_state(item, with_status=self._controller.on_status, metadata_only=self.kind.metadata_only)

    async def _settle_deletion(self, key: Key, stone: Tombstone) -> None:
        """Call `delete` for one tombstone of this name."""
        records, uid = self.router.records, stone.item.meta.uid
        if self._controller.handles(Action.DELETE) and not records.is_deleted(uid) and await self._is_gone(stone):
            if time.monotonic() - stone.since > DELETE_SECONDS:
                log.error("gave up calling delete", extra={"controller": self.name, "object": str(key)})
            else:
                await self._delete(stone)
            if self.router.primary_stream(key).narrowed:
                records.mark_deleted(uid)
        records.remove_tombstone(key, stone)
        handled = records.of(key).handled
        if handled is not None and handled.uid == uid:
            self.router.forget(key)

    async def _delete(self, stone: Tombstone) -> None:
        try:
            axn = await self._process(Action.DELETE, stone.item.key, stone.item, frozenset({Reason.DELETED}))
            if axn.waiting is not None:  # the object is gone: no change of it would come
                raise Retry(axn.waiting, after=axn.requeue_seconds)
        except (Terminal, InvalidObject) as error:
            # No retry can succeed, and a new object of the same name must not wait for it.
            extra = {"controller": self.name, "object": str(stone.item.key), "error": text_of(error, notes="")}
            log.error("gave up calling delete", extra=extra)  # noqa: TRY400  no traceback: it was said on purpose

    async def _is_gone(self, stone: Tombstone) -> bool:
        """Whether the object was deleted; on a narrowed stream it may only have left the selection."""
        current = self.router.item(stone.item.key)
        if current is not None and current.meta.uid == stone.item.meta.uid:
            return False
        if not self.router.primary_stream(stone.item.key).narrowed:
            return True
        try:
            meta = stone.item.meta
            live = await self._client.get(self.kind, meta.name, namespace=meta.namespace or None)
        except NotFound:
            return True
        return bool(live["metadata"]["uid"] != stone.item.meta.uid)

    async def _process(
        self, action: Action, key: Key, item: Item, reasons: frozenset[Reason], *, tries: int = 0
    ) -> Reconcile[Any]:
        """Build the axn and pass it through the pipeline."""
        self._actions[key] = action
        began = time.monotonic()
        # Items of a list have no type.
        resource: Resource = {**item.decode(), "apiVersion": self.kind.api_version, "kind": self.kind.kind}
        loop = asyncio.get_running_loop()
        context = self._context(key=key, emit=lambda *event: loop.call_soon_threadsafe(self._record, *event))
        axn: Reconcile[Any] = self._controller.axn_class(
            action=action,
            resource=resource,
            reasons=reasons,
            tries=tries,
            _context=context,
            _controller=self._controller,
            _kind=self.kind,
            _version=self._version,
            _shown=item,
        )
        run = self._pipeline.run(axn)
        await (run if tracing.spans is None else tracing.spans.reconcile(axn, run, controller=self.name))
        # A reconcile that changed nothing is logged at debug: each restart and each resync brings one per object.
        level = logging.INFO if context.wrote or action is Action.DELETE else logging.DEBUG
        if log.isEnabledFor(level):
            extra: dict[str, object] = {"controller": self.name, "object": str(key), "action": action.value}
            extra |= {"reasons": ",".join(sorted(reasons)), "seconds": round(time.monotonic() - began, 4)}
            if axn.waiting is None:
                log.log(level, "reconciled", extra=extra)
            else:
                log.log(level, "waiting", extra={**extra, "because": axn.waiting})
        return axn

    async def _failed(self, work: Work[Key], error: Exception, *, seconds: float) -> None:
        # One line with all notes: they name the step that failed.
        extra: dict[str, object] = {"controller": self.name, "object": str(work.key), "error": log_text_of(error)}
        if work.key in self._actions:
            extra["action"] = self._actions[work.key].value
        if isinstance(error, HandlerTimeout) and error.thread is not None:
            # A thread cannot be cancelled: it keeps its key and its slot until it returns.
            if not error.thread.done():
                log.warning("handler still running after its timeout", extra=extra)
            await asyncio.wait({error.thread})
            error.thread.exception()  # retrieved, or asyncio would log that it never was
        # No await from here until the duration is observed: bonny.run.metrics counts the difference as successes.
        self.meters.failed(error)
        key, queue, now = work.key, self.router.queue, time.monotonic()
        extra["seconds"] = round(seconds, 4)
        match error:
            case Terminal():
                log.warning("stopped until the object changes", extra=extra)
                queue.cancel_timer(key)
                queue.done(key, now=now)
            case Throttled(after=after):
                after = min(after or 0.0, LONGEST_ADVICE)
                for each in self._controller.queues:
                    each.pause(until=now + after)
                queue.retry(key, now=now, chance=0.0, after=after, failed=False)
                log.warning("controller paused", extra={**extra, "retry_in_seconds": round(after, 3)})
            case Retry(after=after):
                wait = queue.retry(key, now=now, chance=random.random(), after=after, failed=False)
                log.info("retry requested", extra={**extra, "retry_in_seconds": round(wait, 3)})
            case _:
                advice = error.retry_after if isinstance(error, Refusal) else None
                wait = queue.retry(key, now=now, chance=random.random(), after=min(advice or 0.0, LONGEST_ADVICE))
                report(log.warning, "reconcile failed", error, {**extra, "retry_in_seconds": round(wait, 3)})
