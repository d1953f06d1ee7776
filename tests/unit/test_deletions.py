"""Deletions: `delete` is called for each object that is gone, tried again after failures, and given up; no server."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import Any, cast

import pytest

from bonny import Axn, Key, Kind, Resource, Retry, Terminal
from bonny.client.errors import refusal
from bonny.core import watch
from bonny.core.objects import Failure
from bonny.core.queue import Reason
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile, Step
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import DELETE_SECONDS, Worker
from bonny.errors import InvalidObject
from bonny.pipeline import Pipeline
from tests.support.core import item, thing
from tests.support.recorder import KeptEvents
from tests.support.virtual import Clock
from tests.support.working import NO_CLIENT, WIDGET, Quiet, at_work, lists, says, worker_of

W1 = Key("default", "w1")
NARROWED = dataclasses.replace(WIDGET, label_selector="tier=db")


class Deleting(Quiet):
    """The test's own step stands in for its handlers."""

    async def delete(self, axn: Axn[Any]) -> None: ...


class Calls:
    """A step that records its calls, and raises `error` at each `delete`."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.made: list[str] = []
        self._error = error

    def __call__(self, axn: Axn[Any]) -> None:
        self.made.append(f"{axn.action} {axn.uid}")
        if self._error is not None and axn.action is Action.DELETE:
            raise self._error


class Server:
    """An API server that answers each read with the object of this UID; none if it is empty."""

    def __init__(self, uid: str) -> None:
        self._uid = uid

    async def get(self, kind: Kind, name: str, **_: Any) -> Resource:
        if not self._uid:
            raise refusal(Failure(404, "NotFound"), verb="get", resource=f"widgets default/{name}")
        return thing(name, uid=self._uid)


def narrowed_to(server: Server, step: Step) -> Worker:
    """A worker that watches only the objects with a label."""
    stream = Stream(NO_CLIENT, NARROWED, namespace=None, options=watch.WatchOptions())
    return Worker(
        operator="op",
        group="example.com",
        controller=Deleting(),
        kind=NARROWED,
        client=cast("Any", server),
        recorder=KeptEvents(),
        router=Router(primary=[stream], owned={}, on_status=False),
        pipeline=Pipeline([step]),
    )


async def work_off(worker: Worker) -> None:
    while (work := worker.router.queue.take(now=time.monotonic())) is not None:
        await worker._handle(work)


# --- which objects are gone -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("uid", "deleted"), [("", True), ("uid-new", True), ("uid-w1", False)])
async def test_an_object_that_left_the_selection_is_deleted_if_the_server_does_not_have_it(
    uid: str, deleted: bool
) -> None:
    """The server may have a new object of that name, which the selector does not select."""
    calls = Calls()
    worker = narrowed_to(Server(uid), calls)
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", version=5))
    await work_off(worker)
    await says(stream, "DELETED", thing("w1", version=11))

    await work_off(worker)

    assert calls.made == ["add uid-w1", *(["delete uid-w1"] if deleted else [])]
    assert worker.router.records.tombstones(W1) == ()


async def test_a_re_created_object_is_deleted_and_the_new_one_is_added() -> None:
    calls = Calls()
    worker = worker_of(calls, controller=Deleting())
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", version=5))
    await work_off(worker)
    await says(stream, "DELETED", thing("w1", version=11))
    await says(stream, "ADDED", thing("w1", version=12, uid="uid-new"))

    await work_off(worker)

    assert calls.made == ["add uid-w1", "delete uid-w1", "add uid-new"]


# --- a delete that does not succeed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [InvalidObject("spec.size: must be of type integer"), Terminal("no such bucket")])
async def test_a_delete_that_cannot_succeed_is_given_up_and_a_new_object_of_that_name_is_added(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    calls = Calls(error)
    worker = worker_of(calls, controller=Deleting())
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", version=5))
    await work_off(worker)
    await says(stream, "DELETED", thing("w1", version=11))
    await says(stream, "ADDED", thing("w1", version=12, uid="uid-new"))

    await work_off(worker)

    assert calls.made == ["add uid-w1", "delete uid-w1", "add uid-new"]
    assert [line.message for line in caplog.records if line.levelname == "ERROR"] == ["gave up calling delete"]


@pytest.mark.parametrize("since", [DELETE_SECONDS - 60.0, DELETE_SECONDS + 60.0])
async def test_delete_is_given_up_after_an_hour(since: float, caplog: pytest.LogCaptureFixture) -> None:
    calls = Calls(ValueError())
    worker = worker_of(calls, controller=Deleting())
    now = time.monotonic()
    worker.router.records.add_tombstone(W1, item("w1"), now=now - since)
    worker.router.queue.add(W1, Reason.DELETED, now=now)
    work = worker.router.queue.take(now=now)
    assert work is not None

    await worker._handle(work)

    over = since > DELETE_SECONDS
    assert calls.made == ([] if over else ["delete uid-w1"])
    assert len(worker.router.records.tombstones(W1)) == (0 if over else 1)
    assert ("gave up calling delete" in caplog.text) is over


def test_a_delete_that_waits_is_called_again_after_the_time_that_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The object is gone, so no change of it would bring the key back."""
    clock = Clock(monkeypatch)
    times: list[float] = []

    def waits_once(axn: Reconcile[Any]) -> None:
        if axn.action is Action.DELETE:
            times.append(clock.now)
            if len(times) == 1:
                axn.wait("the bucket is not empty", after=30.0)

    async def main() -> None:
        worker = worker_of(waits_once, controller=Deleting())
        stream = worker.router.primary[0]
        await lists(stream, thing("w1", version=5))
        async with at_work(worker):
            await asyncio.sleep(1)
            await says(stream, "DELETED", thing("w1", version=11))
            await asyncio.sleep(100)

    clock.run(main)
    assert len(times) == 2
    assert times[1] - times[0] == pytest.approx(30.0)


async def test_a_delete_that_asks_for_a_retry_keeps_its_tombstone() -> None:
    calls = Calls(Retry("later"))
    worker = worker_of(calls, controller=Deleting())
    stream = worker.router.primary[0]
    await lists(stream, thing("w1", version=5))
    await work_off(worker)
    await says(stream, "DELETED", thing("w1", version=11))

    work = worker.router.queue.take(now=time.monotonic())
    assert work is not None
    await worker._handle(work)

    assert calls.made == ["add uid-w1", "delete uid-w1"]
    assert len(worker.router.records.tombstones(W1)) == 1
