"""Intake: who is queued for what a stream shows. Streams are fed with the bytes a server would send; none is opened."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast

import pytest

from bonny import Controller, Spec, Version
from bonny.core import watch
from bonny.core.queue import QueueOptions, Reason
from bonny.kinds import Kind, Owned, Scope
from bonny.pipeline import Pipeline
from bonny.resource import Key, Resource
from bonny.servers.intake import BARRIER_SECONDS, Intake
from bonny.servers.reflector import Reflector
from bonny.servers.worker import Worker

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
CONFIG_MAP = Owned("v1", "ConfigMap")
W1 = Key("default", "w1")


def thing(name: str, *, version: int, uid: str = "", owner: str = "") -> Resource:
    labels = {"bonny.dev/owner-uid": owner} if owner else {}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": labels}}


class Streams:
    """An intake with its two streams."""

    def __init__(self) -> None:
        self.widgets = Reflector(cast("Any", None), WIDGET, namespace=None, options=watch.WatchOptions())
        self.config_maps = Reflector(cast("Any", None), CONFIG_MAP, namespace=None, options=watch.WatchOptions())
        self.intake = Intake(
            primary=[self.widgets],
            owned={CONFIG_MAP: [self.config_maps]},
            options=QueueOptions(ageing=0.0),
            on_status=False,
        )

    @staticmethod
    def lists(stream: Reflector, *things: Resource, version: int) -> None:
        body = json.dumps({"metadata": {"resourceVersion": str(version)}, "items": things}).encode()
        stream._step(watch.Reply(200, body))
        stream._step(watch.Heard())

    @staticmethod
    def says(stream: Reflector, event: str, thing: Resource) -> None:
        stream._step(watch.Line(json.dumps({"type": event, "object": thing}).encode()))

    def queued(self, *, now: float = 1e9) -> dict[Key, frozenset[Reason]]:
        """Takes everything that is queued."""
        taken = {}
        while (work := self.intake.queue.take(now=now)) is not None:
            taken[work.key] = work.reasons
            self.intake.queue.done(work.key, now=now)
        return taken


@pytest.fixture
def streams() -> Streams:
    made = Streams()
    made.lists(made.widgets, thing("w1", version=5), version=10)
    made.lists(made.config_maps, version=10)
    assert made.queued() == {W1: frozenset({Reason.ADDED})}
    return made


def test_a_changed_child_queues_its_owner(streams: Streams) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    streams.says(streams.config_maps, "ADDED", thing("other", version=12, owner="uid-unknown"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


@pytest.mark.parametrize("event_first", [True, False])
def test_the_event_of_an_own_write_queues_nobody(streams: Streams, event_first: bool) -> None:
    child = Key("default", "c")
    streams.intake.begin_write(CONFIG_MAP, child, owner=W1)
    if event_first:
        streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
        streams.intake.end_write(CONFIG_MAP, child, "11", owner=W1)
    else:
        streams.intake.end_write(CONFIG_MAP, child, "11", owner=W1)
        streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    assert streams.queued() == {}


@pytest.mark.parametrize("foreign", ["before", "between", "behind"])
def test_a_foreign_change_around_an_own_write_is_seen(streams: Streams, foreign: str) -> None:
    child = Key("default", "c")

    def meddle(version: int) -> None:
        streams.says(streams.config_maps, "MODIFIED", thing("c", version=version, owner="uid-w1"))

    streams.intake.begin_write(CONFIG_MAP, child, owner=W1)
    if foreign == "before":
        meddle(11)
    streams.says(streams.config_maps, "MODIFIED", thing("c", version=12, owner="uid-w1"))
    if foreign == "between":
        meddle(13)
    streams.intake.end_write(CONFIG_MAP, child, "12", owner=W1)
    if foreign == "behind":
        meddle(14)
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_a_difference_that_a_list_finds_is_never_taken_for_an_own_write(streams: Streams) -> None:
    """A list can hide a foreign change in front of our own write."""
    child = Key("default", "c")
    streams.intake.begin_write(CONFIG_MAP, child, owner=W1)
    streams.intake.end_write(CONFIG_MAP, child, "12", owner=W1)
    streams.config_maps._step(watch.Silent())
    streams.config_maps._step(watch.Tick())
    streams.lists(streams.config_maps, thing("c", version=12, owner="uid-w1"), version=12)
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_own_writes_that_a_list_showed_are_forgotten(streams: Streams) -> None:
    """Regression: an operator's memory grew with each write whose stream broke before its event."""
    for name in ("stays", "goes"):
        streams.intake.begin_write(CONFIG_MAP, Key("default", name), owner=W1)
        streams.intake.end_write(CONFIG_MAP, Key("default", name), "12", owner=W1)
    streams.config_maps._step(watch.Silent())
    streams.config_maps._step(watch.Tick())

    streams.lists(streams.config_maps, thing("stays", version=12, owner="uid-w1"), version=14)

    assert len(streams.intake._writes[id(streams.config_maps)]) == 0


def test_a_key_waits_until_the_stream_shows_what_it_wrote(streams: Streams) -> None:
    intake = streams.intake
    intake.begin_write(WIDGET, W1, owner=W1)
    intake.end_write(WIDGET, W1, "20", owner=W1)
    intake.queue.add(W1, Reason.CHILD, now=0.0)
    work = intake.queue.take(now=0.0)
    assert work is not None

    assert intake.park(W1, now=0.0)
    assert intake.queue.take(now=1.0) is None
    streams.says(streams.widgets, "MODIFIED", thing("w1", version=20))

    work = intake.queue.take(now=2.0)
    assert work is not None
    assert work.reasons == {Reason.CHILD}
    assert not intake.park(W1, now=2.0)


def test_a_stream_that_never_shows_a_write_holds_its_key_for_five_seconds_once(streams: Streams) -> None:
    """Regression: the wait began anew each time the key came back, so it never ended."""
    intake = streams.intake
    intake.begin_write(WIDGET, W1, owner=W1)
    intake.end_write(WIDGET, W1, "20", owner=W1)
    intake.queue.add(W1, Reason.CHILD, now=0.0)
    assert intake.queue.take(now=0.0) is not None
    assert intake.park(W1, now=0.0)

    assert intake.queue.take(now=BARRIER_SECONDS - 0.1) is None
    assert intake.queue.take(now=BARRIER_SECONDS) is not None
    assert not intake.park(W1, now=BARRIER_SECONDS)
    assert intake.barriers_missed == 1


def test_a_re_created_object_is_buried_and_queued(streams: Streams) -> None:
    streams.says(streams.widgets, "DELETED", thing("w1", version=11))
    streams.says(streams.widgets, "ADDED", thing("w1", version=12, uid="another"))
    assert [stone.item.meta.uid for stone in streams.intake.ledger.tombstones(W1)] == ["uid-w1"]
    assert streams.queued() == {W1: frozenset({Reason.DELETED, Reason.ADDED})}


def test_a_write_under_way_survives_that_the_server_is_restored(streams: Streams) -> None:
    """Regression: the write's end raised a KeyError, and the handling counted as failed."""
    streams.intake.begin_write(WIDGET, W1, owner=W1)
    streams.intake.restored(streams.widgets)
    streams.intake.end_write(WIDGET, W1, "5", owner=W1)
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}


def test_a_restored_server_makes_everything_be_looked_at_again(streams: Streams) -> None:
    streams.widgets._step(watch.Silent())
    streams.widgets._step(watch.Tick())
    streams.lists(streams.widgets, thing("w1", version=3), version=4)
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}


def test_a_child_of_the_handled_kind_itself_is_handled_too() -> None:
    """Regression: the first event of a child was taken for the echo of a write to its owner."""
    tree = Owned("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
    widgets = Reflector(cast("Any", None), WIDGET, namespace=None, options=watch.WatchOptions())
    ours = Reflector(cast("Any", None), tree, namespace=None, options=watch.WatchOptions())
    intake = Intake(primary=[widgets], owned={tree: [ours]}, options=QueueOptions(ageing=0.0), on_status=False)
    Streams.lists(widgets, thing("w1", version=5), version=10)
    Streams.lists(ours, version=10)
    work = intake.queue.take(now=1e9)
    assert work is not None

    child = Key("default", "child")
    intake.begin_write(tree, child, owner=W1)
    for stream in (widgets, ours):
        Streams.says(stream, "ADDED", thing("child", version=11, owner="uid-w1"))
    intake.end_write(tree, child, "11", owner=W1)

    queued = intake.queue.take(now=1e9)
    assert queued is not None
    assert queued.key == child


def test_a_status_of_somebody_else_queues_nobody(streams: Streams) -> None:
    streams.says(streams.widgets, "MODIFIED", {**thing("w1", version=11), "status": {"seen": True}})
    assert streams.queued() == {}


def test_the_end_of_a_stranger_that_held_a_wanted_name_is_the_business_of_who_wanted_it(streams: Streams) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-gone"))
    streams.intake.contest(CONFIG_MAP, Key("default", "c"), owner=W1)
    streams.says(streams.config_maps, "DELETED", thing("c", version=12, owner="uid-gone"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_a_controller_of_several_kinds_validates_each_object_as_what_it_is() -> None:
    """Regression: Deployments were read as the version class in the brackets, and refused."""

    class TreeSpec(Spec):
        """What the user wants."""

    class Tree(Version):
        """One of the kinds."""

        kind = "Tree"
        version = "v1"
        spec: TreeSpec

    class Several(Controller[Tree]):
        resource = (Tree, Kind("apps/v1", "Deployment"))

    def version_for(kind: Kind) -> object:
        intake = Intake(primary=[], owned={}, options=QueueOptions(), on_status=False)
        parts = {"operator": "op", "controller": Several(), "client": cast("Any", None), "pipeline": Pipeline([])}
        return Worker(kind=kind, intake=intake, **cast("Any", parts))._version

    assert [version_for(kind) for kind in Several.kinds("example.com")] == [Tree, None]


async def test_a_worker_is_stuck_when_all_its_slots_are_held_beyond_all_deadlines() -> None:
    """Regression: liveness did not look at the workers at all."""

    class Two(Controller[Any]):
        resource = WIDGET
        max_concurrent = 2
        timeout = 1.0

    intake = Intake(primary=[], owned={}, options=QueueOptions(), on_status=False)
    parts = {"operator": "op", "controller": Two(), "client": cast("Any", None), "pipeline": Pipeline([])}
    worker = Worker(kind=WIDGET, intake=intake, **cast("Any", parts))
    tasks = [asyncio.create_task(asyncio.Event().wait()) for _ in range(2)]
    long_ago = time.monotonic() - 1_000.0
    worker._running = {cast("Any", tasks[0]): long_ago}
    assert not worker.stuck, "a slot is free"
    worker._running = {cast("Any", tasks[0]): long_ago, cast("Any", tasks[1]): time.monotonic()}
    assert not worker.stuck, "one of them began just now"
    worker._running = dict.fromkeys(cast("Any", tasks), long_ago)
    assert worker.stuck
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
