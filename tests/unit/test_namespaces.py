"""Namespaces: a controller of an operator that watches several namespaces has one stream for each of them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from bonny import Key, Kind, Owned
from bonny.core import watch
from bonny.core.queue import Reason
from bonny.engine.router import SETTLE_SECONDS, Router
from bonny.engine.stream import Stream
from tests.support.core import thing
from tests.support.virtual import Clock
from tests.support.working import WIDGET, lists, says

CONFIG_MAP = Owned("v1", "ConfigMap")
TYPE = {"apiVersion": "v1", "kind": "ConfigMap"}
NAMESPACES = ("a", "b")
W1 = Key("b", "w1")


def streams_of(kind: Kind) -> dict[str, Stream]:
    return {
        namespace: Stream(cast("Any", None), kind, namespace=namespace, options=watch.WatchOptions())
        for namespace in NAMESPACES
    }


class Watched:
    """A router whose streams list nothing but the Widget w1, in the namespace b."""

    def __init__(self) -> None:
        self.widgets, self.config_maps = streams_of(WIDGET), streams_of(CONFIG_MAP)
        self.router = Router(
            primary=list(self.widgets.values()), owned={CONFIG_MAP: list(self.config_maps.values())}, on_status=False
        )

    async def list(self) -> None:
        await lists(self.widgets["a"])
        await lists(self.widgets["b"], thing("w1", namespace="b"))
        for stream in self.config_maps.values():
            await lists(stream)


async def test_an_object_is_looked_up_in_the_stream_of_its_namespace() -> None:
    watched = Watched()
    await watched.list()

    found = watched.router.item(W1)

    assert found is not None
    assert found.key == W1
    assert watched.router.item(Key("a", "w1")) is None
    assert watched.router.item(Key("elsewhere", "w1")) is None


async def test_an_owner_waits_for_the_stream_of_the_namespace_that_it_wrote_to() -> None:
    watched = Watched()
    router, child = watched.router, Key("b", "c")
    await watched.list()
    router.own_writes.begin_write(owner=W1)
    router.own_writes.end_write(CONFIG_MAP, child, "20", owner=W1)
    assert router.queue.take(now=1e9) is not None
    assert router.own_writes.park(W1, now=0.0)

    await says(watched.config_maps["a"], "ADDED", thing("other", namespace="a", version=20, **TYPE))
    assert router.queue.take(now=0.0) is None
    await says(watched.config_maps["b"], "ADDED", thing("other", namespace="b", version=20, **TYPE))

    work = router.queue.take(now=0.0)
    assert work is not None
    assert work.reasons == {Reason.ADDED}


def test_a_namespace_whose_list_fails_delays_the_other_namespaces_for_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)

    async def main() -> float:
        watched = Watched()
        await watched.widgets["a"]._step(watch.Reply(503, b""))
        await lists(watched.widgets["b"], thing("w1", namespace="b"))
        began = clock.now
        async with asyncio.timeout(2 * SETTLE_SECONDS):
            await watched.router.wait_until_synced()
        return clock.now - began

    assert clock.run(main) == pytest.approx(SETTLE_SECONDS)
