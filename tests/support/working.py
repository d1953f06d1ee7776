"""Working: a worker without a server; the test is its stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, cast

from bonny import Axn, Controller, Kind, Scope
from bonny.client.api import Client
from bonny.core import watch
from bonny.core.backoff import Backoff
from bonny.engine.reconcile import Step
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import Worker
from bonny.kinds import Owned
from bonny.pipeline import Pipeline
from bonny.resource import Resource
from tests.support.core import line, page
from tests.support.recorder import KeptEvents
from tests.support.waiting import running

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
TYPE = {"apiVersion": "example.com/v1", "kind": "Widget"}
QUICK = Backoff(base=0.001, cap=0.01)
NO_CLIENT = Client(cast("Any", None), user_agent="tests")


class Quiet(Controller[Any]):
    """Has nothing to do by itself."""

    resource = WIDGET

    async def reconcile(self, axn: Axn[Any]) -> None: ...


def worker_of(
    *steps: Step,
    controller: Controller[Any] | None = None,
    client: object = None,
    recorder: KeptEvents | None = None,
    owned: Mapping[Owned, Sequence[Stream]] = MappingProxyType({}),
) -> Worker:
    stream = Stream(NO_CLIENT, WIDGET, namespace=None, options=watch.WatchOptions())
    return Worker(
        operator="op",
        group="example.com",
        controller=controller or Quiet(),
        kind=WIDGET,
        client=cast("Client", client),
        recorder=recorder or KeptEvents(),
        router=Router(primary=[stream], owned=owned, backoff=QUICK, on_status=False),
        pipeline=Pipeline(steps),
    )


async def lists(stream: Stream, *things: Resource) -> None:
    await stream._step(watch.Reply(200, page(*things)))
    await stream._step(watch.Opened())


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[None]:
    async with running(worker.run):
        yield


async def says(stream: Stream, event: str, thing: Resource) -> None:
    """An event of the watch."""
    await stream._step(watch.Line(line(event, {**TYPE, **thing})))
