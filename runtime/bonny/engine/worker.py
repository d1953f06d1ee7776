"""Worker: takes keys of one controller and kind from the queue and lets each pass through the pipeline.

What is to be done about a key is decided here, from the store and the ledger:

    gone, `delete` owed             -> delete, once for each UID, until it succeeds or is given up
    under deletion, our finalizer   -> finalize
    never handled under this UID    -> add
    differs from the last handling  -> modify
    a child changed, or a timer     -> reconcile
    else                            -> nothing

A key leaves the queue only when its handling succeeded; a failure brings it back with a growing wait of its own.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
import zlib
from collections.abc import Collection
from typing import Any, Final

from ..axn import Action, Axn, Tasks
from ..calling import HandlerTimeout, as_failure, stopping, text_of
from ..client.api import Client
from ..client.errors import NotFound, Refusal
from ..controller import Controller, Restart
from ..core.ledger import Handled, Tombstone, handled_state
from ..core.meters import Handlings
from ..core.objects import Item
from ..core.queue import Reason, Work
from ..errors import BonnyError, InvalidObject, Retry, Terminal
from ..kinds import Kind
from ..pipeline import Pipeline
from ..resource import Key, Resource
from ..steps.finalizer import finalizers_of
from ..telemetry import tracing
from ..telemetry.logging import about
from .context import Desk, Identity, Recorder
from .router import Intake

__all__ = ["Worker"]

# A delete handler that still fails after an hour will hardly ever succeed; it is reported and given up.
DELETE_SECONDS: Final = 3600.0
# A proxy that asks for hours must not silence a key for longer than its own backoff would.
LONGEST_ADVICE: Final = 300.0
# Handlers end by their timeout, requests by theirs; what is held longer than both is stuck.
STUCK_SECONDS: Final = 120.0
OTHERS: Final = frozenset({Reason.CHILD, Reason.RELATED})
WAKING: Final = OTHERS | {Reason.REQUEUE, Reason.RESYNC}

log = logging.getLogger("bonny.engine.worker")


class Worker:
    """Up to `max_concurrent` handlings at a time, never two of one key."""

    def __init__(
        self,
        *,
        operator: str,
        group: str,
        controller: Controller[Any],
        kind: Kind,
        client: Client,
        recorder: Recorder,
        tasks: Tasks | None = None,
        intake: Intake,
        pipeline: Pipeline,
    ) -> None:
        self.name = type(controller).__name__
        self.kind = kind
        self.intake = intake
        self.handled = 0
        """Handlings that succeeded, since the start."""
        self.meters = Handlings()
        self.max_concurrent = controller.max_concurrent
        self.restart = Restart(controller.restart)
        finalizer = controller.finalizer_of(operator=operator, group=group)
        self._identity = Identity(operator, manager=f"{operator}/{self.name}", finalizer=finalizer)
        self._finalizers = frozenset(finalizers_of(type(controller), pipeline.steps, operator=operator, group=group))
        self._controller = controller
        named = [known for known in controller.resources() if isinstance(known, type)]
        self._version = next(
            (known for known in named if (known.kind, known.version) == (kind.kind, kind.version)), None
        )
        """What types and validates the objects of this kind; None for those of others."""

        self._client = client
        self._recorder = recorder
        self._tasks = tasks
        self._pipeline = pipeline
        self._running: dict[asyncio.Task[None], float] = {}
        """What runs, and since when."""

        self._stopping = False
        self._stopped: dict[Key, tuple[int, Handled]] = {}
        """What `Terminal` stopped: in which epoch of the ledger, and in which state."""

    def __str__(self) -> str:
        return self.name

    # --- running ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Hand out keys until `stop`, then wait for the reconciles in progress, at most for `shutdown_timeout`.

        Cancelled, it cancels them first. Run again, it reconciles every object: another replica may have led meanwhile.
        """
        if self._stopping:
            self._stopping = False
            self._stopped.clear()
            await self.intake.begin_anew()
        stopping.set(lambda: self._stopping)
        wake = self.intake.wake
        settled = asyncio.create_task(self.intake.settled())
        settled.add_done_callback(lambda _: wake.set())
        try:
            while not self._stopping:
                wake.clear()
                due = self._hand_out() if settled.done() else None
                if due is None:
                    await wake.wait()
                    continue
                # Half the cost of asyncio.timeout, and this is passed once for each key.
                alarm = asyncio.get_running_loop().call_later(max(due - time.monotonic(), 0.0), wake.set)
                try:
                    await wake.wait()
                finally:
                    alarm.cancel()
            if self._running:
                await asyncio.wait(list(self._running), timeout=self._controller.shutdown_timeout)
        finally:
            settled.cancel()
            await self._cancel()

    def _hand_out(self) -> float | None:
        """Start a reconcile in each free slot.

        Returns: when the next key is due; None when only an event, or the end of a reconcile, brings one.
        """
        while len(self._running) < self._controller.max_concurrent:
            work = self.intake.queue.take(now=time.monotonic())
            if work is None:
                return self.intake.queue.next_due()
            task = asyncio.create_task(self._handle(work), name=f"{self.name} {work.key}")
            self._running[task] = time.monotonic()
            task.add_done_callback(self._returned)
        return None

    def stop(self) -> None:
        """Take no further key."""
        self._stopping = True
        self.intake.wake.set()

    async def _cancel(self) -> None:
        """Cancel the reconciles in progress and wait for them."""
        self.stop()
        late = list(self._running)
        for task in late:
            task.cancel()
        if late:
            extra = {"controller": self.name, "count": len(late)}
            log.warning("handlers were cancelled: their time was over", extra=extra)
            await asyncio.wait(late)

    @property
    def running(self) -> Collection[float]:
        """What runs: since when, in monotonic seconds."""
        return self._running.values()

    @property
    def stuck(self) -> bool:
        """Whether every slot is held, and by handlings that should have ended long ago: nothing goes on any more."""
        if len(self._running) < self._controller.max_concurrent:
            return False
        return time.monotonic() - max(self._running.values()) > self._controller.timeout + STUCK_SECONDS

    def _returned(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self.intake.wake.set()
        if not task.cancelled() and task.exception() is not None:
            log.error("a worker failed: please report this", exc_info=task.exception())

    # --- one key ------------------------------------------------------------------------------------------------------

    async def _handle(self, work: Work[Key]) -> None:
        try:
            await self._handle_one(work)
        finally:
            # Whatever ended it: what was handed out is given back. After a cancellation this process may lead again.
            if self.intake.queue.is_working(work.key):
                chance = 0.0 if self._stopping else random.random()
                self.intake.queue.retry(work.key, now=time.monotonic(), chance=chance)

    async def _handle_one(self, work: Work[Key]) -> None:
        key, queue, began = work.key, self.intake.queue, time.monotonic()
        if self.intake.park(key, now=began):
            return
        self.meters.queued.observe(began - work.queued)
        about(controller=self.name, object=key, reasons=work.reasons)
        try:
            await self._settle_deletions(key)
            item = self.intake.item(key)
            if item is None:
                self._forget(key)
            elif not self.intake.ledger.is_settled(item.meta.uid):
                await self._settle_object(item, work)
        except Exception as error:  # noqa: BLE001  whatever a handler raises, its key comes back and nobody else suffers
            await self._failed(work, error, seconds=time.monotonic() - began)
        except BaseException as error:  # noqa: BLE001  a SystemExit would end the process
            await self._failed(work, as_failure(error), seconds=time.monotonic() - began)
        else:
            queue.done(key, now=time.monotonic())
        self.meters.seconds.observe(time.monotonic() - began, tracing.observed.get())

    async def _settle_object(self, item: Item, work: Work[Key]) -> None:
        """Handle what there is to handle, and set the key's timer."""
        key = item.key
        state = self._state(item)
        action = self._action(key, state, work.reasons)
        if action is None:
            return
        self._stopped.pop(key, None)
        epoch = self.intake.ledger.epoch
        try:
            axn = await self._process(action, item, work.reasons, tries=work.tries)
        except Terminal:
            self._stopped[key] = (epoch, state)
            raise
        if not self.intake.ledger.witnesses.get(key):
            self.intake.ledger.witnesses.pop(key, None)
        if axn.applied is not None:
            self.intake.contest((), owner=key)
        # While a server that was restored is listed, an equal generation may hide another content.
        steady = self.intake.ledger.epoch == epoch and not self.intake.restoring
        if steady or self.intake.item(key) is item:
            self.intake.ledger.handled[key] = state if axn.shown in (None, item) else self._state(axn.shown)
        self.handled += 1
        if axn.outdated:
            # Queued while it is held, so it comes again once the streams show what was written.
            self.intake.queue.add(key, Reason.CHILD, now=time.monotonic())
        # What a handler asked for stays when a step halts before it is asked again.
        unasked = axn.halted and self.intake.queue.has_timer(key)
        if axn.requeue_seconds is not None:
            self.meters.requeued_after += 1
            self.intake.queue.set_timer(key, Reason.REQUEUE, at=time.monotonic() + axn.requeue_seconds)
        elif self._controller.reconcile_every < math.inf and action is not Action.FINALIZE and not unasked:
            self.intake.queue.set_timer(key, Reason.RESYNC, at=time.monotonic() + self._resync_seconds(key))

    def _state(self, item: Item) -> Handled:
        return handled_state(item, with_status=self._controller.on_status, metadata_only=self.kind.metadata_only)

    def _action(self, key: Key, state: Handled, reasons: frozenset[Reason]) -> Action | None:
        last = self.intake.ledger.handled.get(key)
        if self._stopped.get(key) == (self.intake.ledger.epoch, state) and not reasons & OTHERS:
            return None
        if state.deletion is not None:
            return Action.FINALIZE if not self._finalizers.isdisjoint(state.finalizers) else None
        if last is None or last.uid != state.uid:
            return Action.ADD
        if last != state:
            return Action.MODIFY
        return Action.RECONCILE if reasons & WAKING else None

    async def _settle_deletions(self, key: Key) -> None:
        """Call `delete` for every object of this name that is gone."""
        ledger = self.intake.ledger
        for stone in ledger.tombstones(key):
            uid = stone.item.meta.uid
            if self._controller.handles(Action.DELETE) and not ledger.is_settled(uid) and await self._is_gone(stone):
                if time.monotonic() - stone.since > DELETE_SECONDS:
                    log.error("delete was given up", extra={"controller": self.name, "object": str(key)})
                else:
                    await self._delete(stone)
                if self.intake.home(key).narrowed:
                    ledger.settle(uid)
            ledger.lift(key, stone)
            last = ledger.handled.get(key)
            if last is not None and last.uid == uid:
                self.intake.forget(key)

    async def _delete(self, stone: Tombstone) -> None:
        try:
            await self._process(Action.DELETE, stone.item, frozenset({Reason.DELETED}))
        except (Terminal, InvalidObject) as error:
            # It will never be different, and an object that took the name must not wait for it.
            extra = {"controller": self.name, "object": str(stone.item.key), "error": text_of(error, notes="")}
            log.error("delete was given up", extra=extra)  # noqa: TRY400  no traceback: it was said on purpose

    async def _is_gone(self, stone: Tombstone) -> bool:
        """Whether the object does not exist any more; on a narrowed stream it may only have left the selection."""
        current = self.intake.item(stone.item.key)
        if current is not None and current.meta.uid == stone.item.meta.uid:
            return False
        if not self.intake.home(stone.item.key).narrowed:
            return True
        try:
            meta = stone.item.meta
            live = await self._client.get(self.kind, meta.name, namespace=meta.namespace or None, cut=True)
        except NotFound:
            return True
        return bool(live["metadata"]["uid"] != stone.item.meta.uid)

    async def _process(self, action: Action, item: Item, reasons: frozenset[Reason], *, tries: int = 0) -> Axn[Any]:
        """Build the axn and let it pass through the pipeline."""
        began = time.monotonic()
        # The items of a list have no type of their own, and metadata alone comes with that of its envelope.
        decoded = self._decoded(item, action)
        resource: Resource = {**decoded, "apiVersion": self.kind.api_version, "kind": self.kind.kind}
        desk = Desk(
            identity=self._identity,
            client=self._client,
            recorder=self._recorder,
            tasks=self._tasks,
            intake=self.intake,
            key=item.key,
        )
        axn: Axn[Any] = Axn(
            action=action,
            resource=resource,
            version=self._version,
            reasons=reasons,
            tries=tries,
            controller=self._controller,
            options=self._controller.options,
            kind=self.kind,
            shown=item,
            workplace=desk,
        )
        with tracing.OFF if tracing.spans is None else tracing.spans.handling(axn, controller=self.name):
            await self._pipeline.run(axn)
        # What changed nothing is no news: a restart handles everything, and so does every period.
        level = logging.INFO if desk.wrote or action is Action.DELETE else logging.DEBUG
        if log.isEnabledFor(level):
            extra = {"controller": self.name, "object": str(item.key), "action": action.value}
            seconds = round(time.monotonic() - began, 4)
            log.log(level, "handled", extra={**extra, "reasons": ",".join(sorted(reasons)), "seconds": seconds})
        return axn

    def _decoded(self, item: Item, action: Action) -> Resource:
        """The object to handle. Raises: `InvalidObject` when it is nested too deeply and not at its end."""
        try:
            return item.decode()
        except InvalidObject as error:
            if action not in (Action.FINALIZE, Action.DELETE):
                raise
            # No later handling can clean up after it, and an object that keeps its finalizer holds its namespace, too.
            extra = {"controller": self.name, "object": str(item.key), "action": action.value, "error": str(error)}
            log.warning("cleaning up without the fields that are nested too deeply", extra=extra)
            return item.decode(cut=True)

    def _forget(self, key: Key) -> None:
        """Nothing of this name exists any more, and its deletion is settled."""
        self.intake.forget(key)
        self._stopped.pop(key, None)
        self.intake.queue.cancel_timer(key)

    def _resync_seconds(self, key: Key) -> float:
        """The period, shortened by up to a tenth for each key its own, so that a restart does not bring a wave."""
        return self._controller.reconcile_every * (1 - 0.1 * zlib.crc32(str(key).encode()) / 2**32)

    async def _failed(self, work: Work[Key], error: Exception, *, seconds: float) -> None:
        # In one line, with the names of the steps that the error passed.
        extra: dict[str, object] = {"controller": self.name, "object": str(work.key), "error": text_of(error, notes="")}
        if isinstance(error, HandlerTimeout) and error.thread is not None:
            # A thread cannot be stopped: its key and its slot stay taken until it returns.
            if not error.thread.done():
                log.warning("a handler runs on after its timeout", extra=extra)
            await asyncio.wait({error.thread})
            error.thread.exception()  # which nobody waits for; asyncio would call it forgotten
        # No await from here to where its time is told: what is no failure counts as a success (bonny.run.metrics).
        self.meters.failed(error)
        key, queue, now = work.key, self.intake.queue, time.monotonic()
        extra["seconds"] = round(seconds, 4)
        match error:
            case Terminal():
                log.warning("stopped until it changes", extra=extra)
                queue.cancel_timer(key)
                queue.done(key, now=now)
            case Retry(after=after):
                wait = queue.retry(key, now=now, chance=random.random(), after=after, failed=False)
                log.info("will try again", extra={**extra, "retry_in_seconds": round(wait, 3)})
            case _:
                after = (
                    min(error.retry_after, LONGEST_ADVICE) if isinstance(error, Refusal) and error.retry_after else None
                )
                wait = queue.retry(key, now=now, chance=random.random(), after=after)
                extra["retry_in_seconds"] = round(wait, 3)
                # Errors of our own say all there is to say; where others come from is worth a traceback.
                unexpected = not isinstance(error, BonnyError)
                log.warning("handling failed", extra=extra, exc_info=error if unexpected else None)
        self.intake.wake.set()
