"""Router: who is queued for what a stream shows, and what is remembered of handlings while the stream goes on.

Streams are fed with the bytes a server would send; none is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny import Action, Axn, Controller, Spec, Version
from bonny.client.errors import refusal
from bonny.core import watch
from bonny.core.objects import Failure, Item
from bonny.core.own_writes import BARRIER_SECONDS
from bonny.core.queue import Reason
from bonny.engine import router as router_module
from bonny.engine.reconcile import Step
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import Worker
from bonny.errors import Terminal
from bonny.kinds import Kind, Owned, Related, Scope
from bonny.pipeline import Pipeline
from bonny.resource import Key, Resource
from bonny.steps.delegate import DelegateToController
from tests.support.recorder import KeptEvents

WIDGET = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
CONFIG_MAP = Owned("v1", "ConfigMap")
WIDGET_TYPE = {"apiVersion": "example.com/v1", "kind": "Widget"}
W1 = Key("default", "w1")


def thing(name: str, *, version: int, uid: str = "", owner: str = "") -> Resource:
    labels = {"bonny.dev/owner-uid": owner} if owner else {}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": labels}}


class Streams:
    """An router with its two streams."""

    def __init__(self, kind: Kind = WIDGET) -> None:
        self.widgets = Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())
        self.config_maps = Stream(cast("Any", None), CONFIG_MAP, namespace=None, options=watch.WatchOptions())
        self.router = Router(
            primary=[self.widgets],
            owned={CONFIG_MAP: [self.config_maps]},
            on_status=False,
        )

    @staticmethod
    def lists(stream: Stream, *things: Resource, version: int) -> None:
        body = json.dumps({"metadata": {"resourceVersion": str(version)}, "items": things}).encode()
        Streams.tells(stream, watch.Reply(200, body), watch.Opened())

    @staticmethod
    def says(stream: Stream, event: str, thing: Resource) -> None:
        named = {"apiVersion": stream.kind.api_version, "kind": stream.kind.kind, **thing}
        Streams.tells(stream, watch.Line(json.dumps({"type": event, "object": named}).encode()))

    @staticmethod
    def tells(stream: Stream, *events: watch.WatchInput) -> None:
        """Each step is carried out to its end; its pauses are not waited for."""
        for event in events:
            step = stream._step(event)
            with contextlib.suppress(StopIteration):
                while True:
                    step.send(None)

    def queued(self, *, now: float = 1e9) -> dict[Key, frozenset[Reason]]:
        """Takes everything that is queued."""
        taken = {}
        while (work := self.router.queue.take(now=now)) is not None:
            taken[work.key] = work.reasons
            self.router.queue.done(work.key, now=now)
        return taken


def remembered(streams: Streams) -> list[Key]:
    """The keys of which a write or a deletion is remembered, in whichever place."""
    writes = streams.router.own_writes
    waiting = [key for versions in writes._awaited.values() for _, key in versions]
    return [*writes._keys, *waiting, *writes._followers]  # type: ignore[list-item]


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


@pytest.mark.parametrize("owner", ["", "uid-another"])
def test_a_child_that_no_longer_names_its_owner_queues_that_owner(streams: Streams, owner: str) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    streams.queued()

    streams.says(streams.config_maps, "MODIFIED", thing("c", version=12, owner=owner))

    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_a_changed_child_without_the_label_queues_the_owner_of_its_owner_reference(streams: Streams) -> None:
    """As after a user removed the label."""
    child = thing("c", version=11)
    child["metadata"]["ownerReferences"] = [{**WIDGET_TYPE, "name": "w1", "uid": "uid-w1"}]
    streams.says(streams.config_maps, "ADDED", child)

    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


@pytest.mark.parametrize("event_first", [True, False])
def test_the_event_of_an_own_write_queues_nobody(streams: Streams, event_first: bool) -> None:
    child = Key("default", "c")
    streams.router.own_writes.begin_write(owner=W1)
    if event_first:
        streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
        streams.router.own_writes.end_write(CONFIG_MAP, child, "11", owner=W1)
    else:
        streams.router.own_writes.end_write(CONFIG_MAP, child, "11", owner=W1)
        streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    assert streams.queued() == {}


@pytest.mark.parametrize("foreign", ["before", "between", "behind"])
def test_a_foreign_change_around_an_own_write_is_seen(streams: Streams, foreign: str) -> None:
    child = Key("default", "c")

    def meddle(version: int) -> None:
        streams.says(streams.config_maps, "MODIFIED", thing("c", version=version, owner="uid-w1"))

    streams.router.own_writes.begin_write(owner=W1)
    if foreign == "before":
        meddle(11)
    streams.says(streams.config_maps, "MODIFIED", thing("c", version=12, owner="uid-w1"))
    if foreign == "between":
        meddle(13)
    streams.router.own_writes.end_write(CONFIG_MAP, child, "12", owner=W1)
    if foreign == "behind":
        meddle(14)
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_a_difference_that_a_list_finds_is_never_taken_for_an_own_write(streams: Streams) -> None:
    """A list can hide a foreign change in front of our own write."""
    child = Key("default", "c")
    streams.router.own_writes.begin_write(owner=W1)
    streams.router.own_writes.end_write(CONFIG_MAP, child, "12", owner=W1)
    streams.tells(streams.config_maps, watch.Silent(), watch.Tick())
    streams.lists(streams.config_maps, thing("c", version=12, owner="uid-w1"), version=12)
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


def test_own_writes_that_a_list_showed_are_forgotten(streams: Streams) -> None:
    """Regression: an operator's memory grew with each write whose stream broke before its event."""
    for name in ("stays", "goes"):
        streams.router.own_writes.begin_write(owner=W1)
        streams.router.own_writes.end_write(CONFIG_MAP, Key("default", name), "12", owner=W1)
    streams.tells(streams.config_maps, watch.Silent())
    streams.tells(streams.config_maps, watch.Tick())

    streams.lists(streams.config_maps, thing("stays", version=12, owner="uid-w1"), version=14)

    assert remembered(streams) == []


def test_a_key_waits_until_the_stream_shows_what_it_wrote(streams: Streams) -> None:
    router = streams.router
    router.own_writes.begin_write(owner=W1)
    router.own_writes.end_write(WIDGET, W1, "20", owner=W1)
    router.queue.add(W1, Reason.CHILD, now=0.0)
    work = router.queue.take(now=0.0)
    assert work is not None

    assert router.own_writes.park(W1, now=0.0)
    assert router.queue.take(now=1.0) is None
    streams.says(streams.widgets, "MODIFIED", thing("w1", version=20))

    work = router.queue.take(now=2.0)
    assert work is not None
    assert work.reasons == {Reason.CHILD}
    assert not router.own_writes.park(W1, now=2.0)


def test_a_stream_that_never_shows_a_write_holds_its_key_for_five_seconds_once(streams: Streams) -> None:
    """Regression: the wait began anew each time the key came back, so it never ended."""
    router = streams.router
    router.own_writes.begin_write(owner=W1)
    router.own_writes.end_write(WIDGET, W1, "20", owner=W1)
    router.queue.add(W1, Reason.CHILD, now=0.0)
    assert router.queue.take(now=0.0) is not None
    assert router.own_writes.park(W1, now=0.0)

    assert router.queue.take(now=BARRIER_SECONDS - 0.1) is None
    assert router.queue.take(now=BARRIER_SECONDS) is not None
    assert not router.own_writes.park(W1, now=BARRIER_SECONDS)
    assert router.own_writes.missed == 1


def test_a_key_that_went_on_too_early_looks_again_when_its_write_is_shown(streams: Streams) -> None:
    """Regression: that event was an own one and woke nobody, so a child that was dropped meanwhile was never pruned."""
    router, child = streams.router, Key("default", "c")
    router.own_writes.begin_write(owner=W1)
    router.own_writes.end_write(CONFIG_MAP, child, "20", owner=W1)
    router.queue.add(W1, Reason.CHANGED, now=0.0)
    for now, parked in ((0.0, True), (BARRIER_SECONDS, False)):
        assert router.queue.take(now=now) is not None
        assert router.own_writes.park(W1, now=now) is parked
    router.queue.done(W1, now=BARRIER_SECONDS)
    assert streams.queued() == {}

    streams.says(streams.config_maps, "ADDED", thing("c", version=20, owner="uid-w1"))

    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


CHILD = Key("default", "c")


def took(streams: Streams, *, now: float) -> bool:
    """Whether the queue hands out `w1`, and it need not wait."""
    work = streams.router.queue.take(now=now)
    return work is not None and not streams.router.own_writes.park(W1, now=now)


@pytest.mark.parametrize("event", ["DELETED", "MODIFIED"])
def test_what_a_handling_deleted_is_waited_for_and_wakes_nobody(streams: Streams, event: str) -> None:
    """Regression: each pruned child brought its owner back, which often did not see yet that the child was gone, and
    deleted it again; an object whose finalizer was gone was finalized twice."""
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}
    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    streams.router.queue.add(W1, Reason.CHANGED, now=0.0)
    assert not took(streams, now=0.0)

    last = thing("c", version=12, owner="uid-w1")
    last["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    streams.says(streams.config_maps, event, last)

    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}
    assert remembered(streams) == []


def test_what_could_not_be_deleted_or_is_not_shown_in_time_holds_up_nobody(streams: Streams) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    streams.queued()
    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    streams.router.own_writes.cancel_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    streams.router.queue.add(W1, Reason.CHANGED, now=0.0)
    assert took(streams, now=0.0)

    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    streams.router.queue.done(W1, now=0.0)
    streams.router.queue.add(W1, Reason.CHANGED, now=1.0)
    assert not took(streams, now=1.0)
    assert took(streams, now=1.0 + BARRIER_SECONDS)
    streams.router.queue.done(W1, now=1.0 + BARRIER_SECONDS)

    streams.says(streams.config_maps, "DELETED", thing("c", version=12, owner="uid-w1"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}, "by then it is news"


def test_another_object_that_took_the_name_of_what_was_deleted_is_news(streams: Streams) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    streams.queued()
    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    streams.router.own_writes.begin_deletion(CONFIG_MAP, Key("default", "unknown"), "uid-unknown", owner=W1)

    streams.says(streams.config_maps, "DELETED", thing("c", version=12, owner="uid-w1"))
    streams.says(streams.config_maps, "ADDED", thing("c", version=13, uid="another", owner="uid-w1"))

    assert streams.queued() == {W1: frozenset({Reason.CHILD})}
    assert remembered(streams) == []


def test_an_owner_does_not_wait_for_the_deletion_of_an_object_that_the_stream_shows_re_created(
    streams: Streams,
) -> None:
    """The event of that deletion has passed already."""
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, uid="another", owner="uid-w1"))
    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)

    assert took(streams, now=time.monotonic())


# --- own writes of several keys, for a long time ----------------------------------------------------------------------


W2 = Key("default", "w2")


@pytest.fixture
def two(streams: Streams) -> Streams:
    """There is a second object, `w2`."""
    streams.says(streams.widgets, "ADDED", thing("w2", version=11))
    assert streams.queued() == {W2: frozenset({Reason.ADDED})}
    return streams


def wrote(streams: Streams, owner: Key, version: int, *, child: str = "c") -> None:
    streams.router.own_writes.begin_write(owner=owner)
    streams.router.own_writes.end_write(CONFIG_MAP, Key("default", child), str(version), owner=owner)


def taken(streams: Streams, *keys: Key, now: float) -> list[Key]:
    """Queue these and take all that are ready; returns those that need not wait. They are worked on then."""
    for key in keys:
        streams.router.queue.add(key, Reason.CHANGED, now=now)
    free = []
    while (work := streams.router.queue.take(now=now)) is not None:
        if not streams.router.own_writes.park(work.key, now=now):
            free.append(work.key)
    return free


def test_a_write_of_one_object_says_nothing_of_the_children_of_another(two: Streams) -> None:
    two.router.own_writes.begin_write(owner=W1)
    two.says(two.config_maps, "ADDED", thing("c", version=12, owner="uid-w1"))
    two.says(two.config_maps, "ADDED", thing("other", version=13, owner="uid-w2"))
    assert two.queued() == {W2: frozenset({Reason.CHILD})}

    two.router.own_writes.end_write(CONFIG_MAP, CHILD, "14", owner=W1)
    assert two.queued() == {W1: frozenset({Reason.CHILD})}
    two.says(two.config_maps, "MODIFIED", thing("other", version=14, owner="uid-w2"))
    assert two.queued() == {W2: frozenset({Reason.CHILD})}


@given(data=st.data(), count=st.integers(1, 12))
def test_of_several_objects_on_one_stream_each_has_its_own_writes(data: st.DataObject, count: int) -> None:
    """Writes also fail, and are answered before or behind any event, of whichever object."""
    streams = Streams()
    streams.lists(streams.widgets, thing("w1", version=5), thing("w2", version=6), version=10)
    streams.lists(streams.config_maps, version=10)
    router, told, foreign = streams.router, Counter[Key](), Counter[Key]()
    router._enqueue = router.own_writes._enqueue = lambda key, *_, **__: told.update([key])  # type: ignore[method-assign, assignment]
    pending: list[tuple[Key, str | None]] = []
    for version in range(11, 11 + count):
        owner = data.draw(st.sampled_from([W1, W2]))
        outcome = data.draw(st.sampled_from(["own", "failed", "foreign"]))
        foreign[owner] += outcome != "own"
        if outcome != "foreign":
            router.own_writes.begin_write(owner=owner)
            pending.append((owner, str(version) if outcome == "own" else None))
        early, pending = data.draw(st.sampled_from([(pending, []), ([], pending)]))
        for writer, answer in early:
            router.own_writes.end_write(CONFIG_MAP, Key("default", writer.name), answer, owner=writer)
        streams.says(streams.config_maps, "MODIFIED", thing(owner.name, version=version, owner=f"uid-{owner.name}"))
    for writer, answer in pending:
        router.own_writes.end_write(CONFIG_MAP, Key("default", writer.name), answer, owner=writer)

    assert told == foreign
    assert remembered(streams) == []


def test_a_stream_releases_exactly_the_keys_whose_writes_it_shows(two: Streams) -> None:
    wrote(two, W1, 30)
    wrote(two, W1, 25)
    wrote(two, W2, 20)
    assert taken(two, W1, W2, now=0.0) == []

    two.says(two.config_maps, "ADDED", thing("other", version=19))
    assert taken(two, now=1.0) == []
    two.says(two.config_maps, "ADDED", thing("other", version=20))
    assert taken(two, now=1.0) == [W2]
    two.says(two.config_maps, "MODIFIED", thing("other", version=29))
    assert taken(two, now=1.0) == [], "it waits for its newest write"
    two.says(two.config_maps, "MODIFIED", thing("other", version=31))
    assert taken(two, now=1.0) == [W1]
    assert remembered(two) == []


def test_a_key_that_wrote_to_two_streams_waits_for_both(streams: Streams) -> None:
    wrote(streams, W1, 20)
    streams.router.own_writes.begin_write(owner=W1)
    streams.router.own_writes.end_write(WIDGET, W1, "30", owner=W1)
    assert taken(streams, W1, now=0.0) == []

    streams.says(streams.config_maps, "ADDED", thing("c", version=20, owner="uid-w1"))
    assert taken(streams, now=1.0) == []
    streams.says(streams.widgets, "MODIFIED", thing("w1", version=30))
    assert taken(streams, now=1.0) == [W1]
    assert remembered(streams) == []


def test_a_key_that_writes_again_after_its_wait_was_over_waits_again(streams: Streams) -> None:
    """And not for what it gave up to wait for."""
    wrote(streams, W1, 40)
    assert taken(streams, W1, now=0.0) == []
    assert taken(streams, now=BARRIER_SECONDS) == [W1]
    wrote(streams, W1, 20)
    streams.router.queue.done(W1, now=BARRIER_SECONDS)
    assert taken(streams, W1, now=BARRIER_SECONDS) == []
    assert (streams.router.own_writes.waits, streams.router.own_writes.missed) == (2, 1)

    streams.says(streams.config_maps, "ADDED", thing("c", version=20, owner="uid-w1"))

    assert taken(streams, now=BARRIER_SECONDS + 1.0) == [W1]
    assert remembered(streams) == []


def test_a_stream_that_never_moves_does_not_collect_what_keys_wait_for() -> None:
    """Regression: each write of a controller whose children may not be watched left something behind: 50,000 writes to
    ten keys left 50,000 places."""
    streams, now = Streams(), 0.0
    router, waiting = streams.router, streams.router.own_writes._awaited[streams.config_maps]
    owners = [Key("default", f"w{number}") for number in range(10)]
    streams.lists(streams.widgets, *(thing(key.name, version=5) for key in owners), version=10)
    streams.lists(streams.config_maps, thing("c", version=9), version=10)
    streams.queued()
    for number in range(10_000):
        owner = owners[number % 10]
        now += BARRIER_SECONDS if number % 3 == 0 else 0.1
        for version in (1_000 + 2 * number, 1_001 + 2 * number):
            wrote(streams, owner, version, child=f"c{number}")
        router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=owner)
        for key in taken(streams, owner, now=now):
            router.queue.done(key, now=now)
        assert len(waiting) <= len(owners)
        assert waiting == sorted(waiting)
        assert sum(map(len, router.own_writes._followers.values())) <= len(owners)
        assert len(router.own_writes._keys) <= len(owners)
        assert len(router.records) <= len(owners)
        assert all(len(writes.made) <= 20 for writes in router.own_writes._keys.values())

    assert router.own_writes.missed > 1_000
    streams.says(streams.config_maps, "DELETED", thing("c", version=100_000))
    assert remembered(streams) == []


def test_a_key_that_is_forgotten_while_it_waits_leaves_nothing(two: Streams) -> None:
    two.says(two.config_maps, "ADDED", thing("c", version=12, owner="uid-w1"))
    two.queued()
    for owner in (W1, W2):
        wrote(two, owner, 20)
        two.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=owner)
    two.router.own_writes.want([(CONFIG_MAP, Key("default", "taken"))], owner=W1)
    assert taken(two, W1, W2, now=0.0) == []

    two.router.forget(W1)
    two.router.queue.discard(W1)

    assert set(remembered(two)) == {W2, (two.config_maps, CHILD, "uid-c")}  # type: ignore[comparison-overlap]
    assert two.router.records.get(W1) is None
    two.says(two.config_maps, "DELETED", thing("c", version=20, owner="uid-w1"))
    assert set(taken(two, now=1.0)) == {W1, W2}, "w1 is told as the owner of a child that is gone"
    assert remembered(two) == []


@pytest.mark.parametrize("forgets", ["taken again", "gone"])
def test_a_write_that_outlives_its_reconcile_is_known_until_it_is_answered(streams: Streams, forgets: str) -> None:
    """Regression: a handler's task that still wrote when its key was taken again left a count below zero, so that every
    later event of the key was kept in memory."""
    router = streams.router
    router.own_writes.begin_write(owner=W1)
    if forgets == "gone":
        router.forget(W1)
    else:
        assert taken(streams, W1, now=0.0) == [W1]
        router.queue.done(W1, now=0.0)

    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    assert streams.queued() == {}
    router.own_writes.end_write(CONFIG_MAP, CHILD, "11", owner=W1)

    assert streams.queued() == {}
    assert remembered(streams) == []
    streams.says(streams.config_maps, "MODIFIED", thing("c", version=12, owner="uid-w1"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}
    assert remembered(streams) == []


# --- names that several keys follow -----------------------------------------------------------------------------------


def test_two_objects_that_want_one_name_are_both_told_until_each_gives_it_up(two: Streams) -> None:
    for owner in (W1, W2):
        two.router.own_writes.want([(CONFIG_MAP, CHILD)], owner=owner)
    two.says(two.config_maps, "ADDED", thing("c", version=12))
    assert set(two.queued()) == {W1, W2}

    two.router.own_writes.want((), owner=W1)
    two.says(two.config_maps, "MODIFIED", thing("c", version=13))
    assert set(two.queued()) == {W2}

    two.router.forget(W2)
    two.says(two.config_maps, "MODIFIED", thing("c", version=14))
    assert two.queued() == {}
    assert two.router.own_writes._followers == {}


def test_two_objects_that_deleted_one_child_both_wait_and_neither_is_told(two: Streams) -> None:
    two.says(two.config_maps, "ADDED", thing("c", version=12, owner="uid-w1"))
    two.queued()
    for owner in (W1, W2):
        two.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=owner)
    assert taken(two, W1, W2, now=0.0) == []

    two.says(two.config_maps, "DELETED", thing("c", version=13, owner="uid-w1"))

    assert two.queued() == {W1: frozenset({Reason.CHANGED}), W2: frozenset({Reason.CHANGED})}
    assert remembered(two) == []


@pytest.mark.parametrize("first", ["contest", "deletion"])
def test_a_name_that_an_object_wants_and_deleted_is_followed_until_both_are_over(streams: Streams, first: str) -> None:
    router = streams.router
    streams.says(streams.config_maps, "ADDED", thing("c", version=12, owner="uid-gone"))
    router.own_writes.want([(CONFIG_MAP, CHILD)], owner=W1)
    router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)

    if first == "contest":
        router.own_writes.want((), owner=W1)
    else:
        router.own_writes.cancel_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)
    uid = "uid-c" if first == "contest" else ""
    assert router.own_writes._followers == {(streams.config_maps, CHILD, uid): {W1}}

    streams.says(streams.config_maps, "DELETED", thing("c", version=13, owner="uid-gone"))
    assert streams.queued() == ({} if first == "contest" else {W1: frozenset({Reason.CHILD})})
    router.own_writes.want((), owner=W1)
    assert router.own_writes._followers == {}


# --- a restore while keys wait ----------------------------------------------------------------------------------------


def test_keys_that_wait_while_the_server_is_restored_come_back_and_missed_nothing(two: Streams) -> None:
    """What they wait for never comes: the versions begin anew below it."""
    two.says(two.config_maps, "ADDED", thing("c", version=12, owner="uid-w1"))
    two.queued()
    wrote(two, W1, 500)
    two.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W2)
    assert taken(two, W1, W2, now=0.0) == []

    two.tells(two.config_maps, watch.Silent(), watch.Tick())
    two.lists(two.config_maps, thing("c", version=3, owner="uid-w1"), version=4)

    assert remembered(two) == []
    assert set(taken(two, now=BARRIER_SECONDS)) == {W1, W2}
    assert two.router.own_writes.missed == 0


def test_a_write_that_is_answered_after_a_restore_is_waited_for_and_recognised(streams: Streams) -> None:
    wrote(streams, W1, 500)
    streams.router.own_writes.begin_write(owner=W1)
    assert taken(streams, W1, now=0.0) == []
    streams.tells(streams.config_maps, watch.Silent(), watch.Tick())
    streams.lists(streams.config_maps, version=4)

    streams.router.own_writes.end_write(CONFIG_MAP, CHILD, "6", owner=W1)

    assert streams.router.own_writes._awaited[streams.config_maps] == [(6, W1)]
    streams.says(streams.config_maps, "ADDED", thing("c", version=6, owner="uid-w1"))
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}
    assert remembered(streams) == []


# --- children that are not known --------------------------------------------------------------------------------------


async def test_who_asked_for_children_that_were_not_known_is_queued_once_they_are(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: all who had asked came back every half a minute, for as long as a person took to mend the stream."""
    monkeypatch.setattr(router_module, "IN_SYNC_SECONDS", 0.0)
    streams.tells(streams.config_maps, watch.Silent(), watch.Tick())
    assert streams.router.children("uid-w1", owner=W1) is None
    await rounds()
    assert streams.queued() == {}

    streams.lists(streams.config_maps, version=12)

    await rounds()
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}
    assert streams.router.children("uid-w1", owner=W1) == []


async def test_an_owner_that_asks_for_its_children_during_a_second_outage_is_queued_after_it(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router_module, "IN_SYNC_SECONDS", 0.0)
    for version in (12, 13):
        streams.tells(streams.config_maps, watch.Silent(), watch.Tick())
        assert streams.router.children("uid-w1", owner=W1) is None
        streams.lists(streams.config_maps, version=version)
        await rounds()

        assert streams.queued() == {W1: frozenset({Reason.CHILD})}


async def rounds() -> None:
    """Let the loop call what is due, and what that makes due."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_re_created_object_is_buried_and_queued(streams: Streams) -> None:
    streams.says(streams.widgets, "DELETED", thing("w1", version=11))
    streams.says(streams.widgets, "ADDED", thing("w1", version=12, uid="another"))
    assert [stone.item.meta.uid for stone in streams.router.records.tombstones(W1)] == ["uid-w1"]
    assert streams.queued() == {W1: frozenset({Reason.DELETED, Reason.ADDED})}


def test_an_object_that_was_re_created_during_an_outage_has_a_tombstone(streams: Streams) -> None:
    """A list shows the new object in place of the old one, and no event of the deletion."""
    relisted(streams, thing("w1", version=95, uid="another"), version=100)

    assert [stone.item.meta.uid for stone in streams.router.records.tombstones(W1)] == ["uid-w1"]
    (reasons,) = streams.queued().values()
    assert Reason.DELETED in reasons


def test_a_standby_keeps_the_key_of_a_re_created_object_when_it_removes_its_tombstones(streams: Streams) -> None:
    """The standby may lead later, and then the new object is due."""
    streams.says(streams.widgets, "DELETED", thing("w1", version=11))
    streams.says(streams.widgets, "ADDED", thing("w1", version=12, uid="another"))

    streams.router.remove_tombstones(before=time.monotonic() + 1.0)

    assert streams.router.records.tombstones(W1) == ()
    assert W1 in streams.queued()


async def test_in_a_later_term_all_objects_wait_behind_live_changes(streams: Streams) -> None:
    await streams.router.requeue_all()
    streams.says(streams.widgets, "ADDED", thing("w2", version=11))

    assert list(streams.queued()) == [W2, W1]


def test_the_first_list_of_children_queues_their_owners_behind_live_changes() -> None:
    streams = Streams()
    streams.lists(streams.widgets, thing("w1", version=5), version=10)
    streams.queued()
    streams.lists(streams.config_maps, thing("c", version=6, owner="uid-w1"), version=10)
    streams.says(streams.widgets, "ADDED", thing("w2", version=11))

    assert list(streams.queued()) == [W2, W1]


def test_a_write_under_way_survives_that_the_server_is_restored(streams: Streams) -> None:
    """Regression: the write's end raised a KeyError, and the handling counted as failed."""
    streams.router.own_writes.begin_write(owner=W1)
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    streams.lists(streams.widgets, thing("w1", version=3), version=4)
    streams.router.own_writes.end_write(WIDGET, W1, "5", owner=W1)
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}


def test_a_restored_server_makes_everything_be_looked_at_again(streams: Streams) -> None:
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    streams.lists(streams.widgets, thing("w1", version=3), version=4)
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}


def test_after_the_list_of_a_restored_server_only_differences_count_again(streams: Streams) -> None:
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    streams.lists(streams.widgets, thing("w1", version=3), version=4)
    streams.queued()
    streams.says(streams.widgets, "MODIFIED", {**thing("w1", version=5), "status": {"seen": True}})
    assert streams.queued() == {}


def test_the_writes_to_children_that_are_gone_are_forgotten(streams: Streams) -> None:
    """Regression: each child that a list had shown first, and that ended later, left its writes in memory."""
    for number in range(20):
        name, version = f"job-{number}", 100 + 10 * number
        streams.router.own_writes.begin_write(owner=W1)
        streams.router.own_writes.end_write(CONFIG_MAP, Key("default", name), str(version), owner=W1)
        streams.tells(streams.config_maps, watch.Silent(), watch.Tick())
        streams.lists(streams.config_maps, thing(name, version=version, owner="uid-w1"), version=version)
        streams.says(streams.config_maps, "DELETED", thing(name, version=version + 1, owner="uid-w1"))

    assert len(streams.config_maps.store) == 0
    assert remembered(streams) == []


async def test_no_timer_is_left_of_an_object_that_is_gone(streams: Streams) -> None:
    """It would hold memory until the next resync, ten hours later."""
    worker = worker_of(streams)
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "large", version=11))
    await work_off(worker)
    assert streams.router.queue.has_timer(W1)

    streams.says(streams.widgets, "DELETED", of_size("w1", "large", version=12))
    await work_off(worker)

    assert not streams.router.queue.has_timer(W1)


async def test_the_contests_of_objects_that_are_gone_are_forgotten(streams: Streams) -> None:
    """Regression: everyone who had ever wanted a name that stays taken was remembered."""
    worker = worker_of(streams)
    for number in range(20):
        key = Key("default", f"ci-{number}")
        streams.says(streams.widgets, "ADDED", thing(key.name, version=100 + 2 * number))
        streams.router.own_writes.want([(CONFIG_MAP, Key("default", "shared"))], owner=key)
        streams.says(streams.widgets, "DELETED", thing(key.name, version=101 + 2 * number))
        await work_off(worker)

    assert streams.router.own_writes._followers == {}


def test_an_object_contests_only_the_names_that_its_last_handling_wanted(streams: Streams) -> None:
    """Regression: each name that an object ever wanted was remembered for as long as the object existed."""
    for number in range(20):
        streams.router.own_writes.want([(CONFIG_MAP, Key("default", f"taken-{number}"))], owner=W1)

    assert [key.name for _, key, _ in streams.router.own_writes._followers] == ["taken-19"]


async def test_an_object_whose_descendants_are_applied_contests_nothing(streams: Streams) -> None:
    def applied(axn: Axn[Any]) -> None:
        axn.applied = set()

    worker = worker_of(streams, applied)
    streams.router.own_writes.want([(CONFIG_MAP, CHILD)], owner=W1)
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "2", version=11))
    await work_off(worker)

    assert streams.router.own_writes._followers == {}


def test_a_name_that_one_object_gives_up_is_offered_to_the_one_that_wants_it(streams: Streams) -> None:
    """Regression: the deletion was the operator's own, so the object that wanted the name waited for its backoff."""
    w2 = Key("default", "w2")
    streams.says(streams.widgets, "ADDED", thing("w2", version=11))
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-w1"))
    streams.queued()
    streams.router.own_writes.want([(CONFIG_MAP, CHILD)], owner=w2)
    streams.router.own_writes.begin_deletion(CONFIG_MAP, CHILD, "uid-c", owner=W1)

    streams.says(streams.config_maps, "DELETED", thing("c", version=12, owner="uid-w1"))

    assert streams.queued() == {w2: frozenset({Reason.CHILD})}


def test_children_are_known_only_while_every_owned_stream_is_in_sync() -> None:
    secret_kind = Owned("v1", "Secret")
    made = Streams()
    secrets = Stream(cast("Any", None), secret_kind, namespace=None, options=watch.WatchOptions())
    owned = {CONFIG_MAP: [made.config_maps], secret_kind: [secrets]}
    router = Router(primary=[made.widgets], owned=owned, on_status=False)
    # So that no timer is begun, for which there is no loop here.
    router._keys_waiting_for_sync.add(Key("default", "another"))
    made.lists(made.config_maps, version=10)

    assert router.children("uid-w1", owner=W1) is None
    made.lists(secrets, version=10)
    assert router.children("uid-w1", owner=W1) == []


def test_a_child_of_the_handled_kind_itself_is_handled_too() -> None:
    """Regression: the first event of a child was taken for the echo of a write to its owner."""
    tree = Owned("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)
    widgets = Stream(cast("Any", None), WIDGET, namespace=None, options=watch.WatchOptions())
    ours = Stream(cast("Any", None), tree, namespace=None, options=watch.WatchOptions())
    router = Router(primary=[widgets], owned={tree: [ours]}, on_status=False)
    Streams.lists(widgets, thing("w1", version=5), version=10)
    Streams.lists(ours, version=10)
    work = router.queue.take(now=1e9)
    assert work is not None

    child = Key("default", "child")
    router.own_writes.begin_write(owner=W1)
    for stream in (widgets, ours):
        Streams.says(stream, "ADDED", thing("child", version=11, owner="uid-w1"))
    router.own_writes.end_write(tree, child, "11", owner=W1)

    queued = router.queue.take(now=1e9)
    assert queued is not None
    assert queued.key == child


def test_a_status_of_somebody_else_queues_nobody(streams: Streams) -> None:
    streams.says(streams.widgets, "MODIFIED", {**thing("w1", version=11), "status": {"seen": True}})
    assert streams.queued() == {}


def test_a_status_queues_the_objects_of_a_controller_that_asks_for_status_changes(streams: Streams) -> None:
    streams.router._on_status = True
    streams.says(streams.widgets, "MODIFIED", {**thing("w1", version=11), "status": {"seen": True}})
    assert streams.queued() == {W1: frozenset({Reason.CHANGED})}


def test_the_end_of_a_stranger_that_held_a_wanted_name_is_the_business_of_who_wanted_it(streams: Streams) -> None:
    streams.says(streams.config_maps, "ADDED", thing("c", version=11, owner="uid-gone"))
    streams.router.own_writes.want([(CONFIG_MAP, CHILD)], owner=W1)
    streams.says(streams.config_maps, "DELETED", thing("c", version=12, owner="uid-gone"))
    assert streams.queued() == {W1: frozenset({Reason.CHILD})}


NODE = Kind("v1", "Node")


def related_to(kind: Kind, related: Related) -> tuple[Streams, Stream]:
    """An router of objects of `kind`, of which there is one, `w1`; and the stream of the related kind."""
    primary = Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())
    others = Stream(cast("Any", None), related, namespace=None, options=watch.WatchOptions())
    made = Streams()
    made.router = Router(primary=[primary], owned={}, related={related: [others]}, on_status=False)
    listed = thing("w1", version=5)
    if not kind.namespaced:
        del listed["metadata"]["namespace"]
    made.lists(others, version=10)
    made.lists(primary, listed, version=10)
    made.queued()
    return made, others


def secret(version: int) -> Resource:
    made = thing("s1", version=version)
    made["metadata"]["namespace"] = "ops"
    return made


def test_names_of_objects_that_are_in_no_namespace_need_none() -> None:
    """Regression: they were looked for in the namespace of the object that named them, and never found."""
    streams, secrets = related_to(NODE, Related("v1", "Secret", keys=lambda _: ["w1"]))
    streams.says(secrets, "ADDED", secret(11))
    assert streams.queued() == {Key("", "w1"): frozenset({Reason.RELATED})}


@pytest.mark.parametrize("wrong", ["w1", None, [("a", "b", "c")], [("a", ["b"])], [("a", 5)], SystemExit(3)])
def test_a_wrong_function_of_related_harms_no_other_object_and_is_named(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: of a text each letter was taken for a name; sys.exit ended the operator."""

    def keys(_: Resource) -> Any:
        if isinstance(wrong, BaseException):
            raise wrong
        return wrong

    streams, secrets = related_to(WIDGET, Related("v1", "Secret", keys=keys))
    streams.says(secrets, "ADDED", secret(11))
    assert streams.queued() == {}
    assert [record.message for record in caplog.records] == ["a function of Related failed"]


def test_a_controller_of_several_kinds_validates_each_object_as_what_it_is() -> None:
    """Regression: Deployments were read as the version class in the brackets, and refused; so was a kind of another
    group, with the name and version of that class."""

    class TreeSpec(Spec):
        """What the user wants."""

    class Tree(Version):
        """One of the kinds."""

        kind = "Tree"
        version = "v1"
        spec: TreeSpec

    class Several(Controller[Tree]):
        foreign = Kind("forest.example.org/v1", "Tree", plural="trees", scope=Scope.NAMESPACED)
        resource = (Tree, Kind("apps/v1", "Deployment"), foreign)

    def version_for(kind: Kind) -> object:
        router = Router(primary=[], owned={}, on_status=False)
        parts = {"operator": "op", "group": "example.com", "controller": Several(), "pipeline": Pipeline([])}
        return Worker(
            kind=kind, router=router, client=cast("Any", None), recorder=KeptEvents(), **cast("Any", parts)
        )._version

    assert [version_for(kind) for kind in Several.kinds("example.com")] == [Tree, None, None]


# --- what is handled while things happen ------------------------------------------------------------------------------


class Widgets(Controller[Any]):
    """What is handled; the test's own step stands in for its handlers."""

    resource = WIDGET

    async def reconcile(self, axn: Axn[Any]) -> None: ...

    async def delete(self, axn: Axn[Any]) -> None: ...


def worker_of(streams: Streams, *steps: Step, kind: Kind = WIDGET, client: object = None) -> Worker:
    return Worker(
        operator="op",
        group="example.com",
        controller=Widgets(),
        kind=kind,
        client=cast("Any", client),
        recorder=KeptEvents(),
        router=streams.router,
        pipeline=Pipeline(steps),
    )


async def begun(worker: Worker) -> list[asyncio.Task[None]]:
    """Hand out everything that is queued; return when none of it gets any further by itself."""
    tasks = []
    while (work := worker.router.queue.take(now=time.monotonic())) is not None:
        tasks.append(asyncio.create_task(worker._handle(work)))
    for _ in range(10):
        await asyncio.sleep(0)
    return tasks


async def work_off(worker: Worker) -> None:
    await asyncio.gather(*await begun(worker))


async def test_a_step_that_halts_does_not_undo_what_a_handler_asked_for(streams: Streams) -> None:
    """Regression: a label's change, for which a step halted, put ten hours in the place of `requeue_after`."""

    def handler(axn: Axn[Any]) -> None:
        if axn.action is Action.MODIFY:
            axn.halt()
        else:
            axn.requeue_after(60.0)

    worker = worker_of(streams, handler)
    streams.says(streams.widgets, "ADDED", of_size("w2", "1", version=11))
    await work_off(worker)
    changed = of_size("w2", "1", version=12)
    changed["metadata"]["labels"] = {"a": "b"}
    streams.says(streams.widgets, "MODIFIED", changed)
    await work_off(worker)

    due = streams.router.queue.next_due()
    assert due is not None
    assert due <= time.monotonic() + 60.0
    assert worker.handled == 2


class Gate:
    """A step that notes the size of what it is given, and lets it pass when it is open."""

    def __init__(self) -> None:
        self.sizes: list[str] = []
        self.open = asyncio.Event()

    async def __call__(self, axn: Axn[Any]) -> None:
        self.sizes.append(axn.resource["spec"])
        await self.open.wait()


def of_size(name: str, size: str, *, version: int) -> Resource:
    """An object whose generation says nothing of its size: a backup has the same numbers for other content."""
    made = thing(name, version=version)
    return {"metadata": {**made["metadata"], "generation": 5}, "spec": size}


async def test_a_reconcile_under_way_when_the_server_is_restored_is_not_remembered(streams: Streams) -> None:
    """Regression: what it saw of the lost future counted as handled, and what the backup had instead never was."""
    gate = Gate()
    worker = worker_of(streams, gate)
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "lost", version=90))
    (under_way,) = await begun(worker)
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    streams.lists(streams.widgets, of_size("w1", "restored", version=45), version=50)

    gate.open.set()
    await under_way
    await work_off(worker)

    assert gate.sizes == ["lost", "restored"]


async def test_a_reconcile_between_two_pages_of_a_restored_server_is_not_remembered(streams: Streams) -> None:
    """Regression: a timer in that moment handled what the next page replaced by content of the same generation."""
    gate = Gate()
    gate.open.set()
    worker = worker_of(streams, gate)
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "lost", version=90))
    await work_off(worker)
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    first = {"metadata": {"resourceVersion": "50", "continue": "t1"}, "items": [of_size("a", "a", version=30)]}
    streams.tells(streams.widgets, watch.Reply(200, json.dumps(first).encode()))
    streams.router.queue.add(W1, Reason.CHILD, now=time.monotonic())
    await work_off(worker)

    streams.lists(streams.widgets, of_size("w1", "restored", version=45), version=50)
    await work_off(worker)

    assert gate.sizes == ["lost", "a", "lost", "restored"]


async def test_a_reconcile_between_two_pages_of_a_restored_server_does_not_count_for_the_object_of_the_later_page(
    streams: Streams,
) -> None:
    """The later page shows other content under the same generation."""
    gate = Gate()
    worker = worker_of(streams, gate)
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "lost", version=90))
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    for token, listed in (("t1", of_size("a", "a", version=30)), ("t2", of_size("w1", "restored", version=45))):
        page = {"metadata": {"resourceVersion": "50", "continue": token}, "items": [listed]}
        streams.tells(streams.widgets, watch.Reply(200, json.dumps(page).encode()))
        if token == "t1":
            under_way = await begun(worker)
    assert sorted(gate.sizes) == ["a", "lost"]

    gate.open.set()
    await asyncio.gather(*under_way)
    streams.lists(streams.widgets, of_size("z", "z", version=46), version=50)
    await work_off(worker)

    assert sorted(gate.sizes) == ["a", "lost", "restored", "z"]


def relisted(streams: Streams, *things: Resource, version: int) -> None:
    """The watch expires, and everything is listed again."""
    expired = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    streams.tells(streams.widgets, watch.Line(json.dumps(expired).encode()), watch.Tick())
    streams.lists(streams.widgets, *things, version=version)


async def test_a_list_that_shows_other_content_under_the_handled_generation_is_handled() -> None:
    """Regression: a server that was restored and has passed our version since showed a user's change under the
    generation that we had handled, and it waited for the next period."""
    streams = Streams()
    gate = Gate()
    gate.open.set()
    worker = worker_of(streams, gate)
    streams.lists(streams.widgets, of_size("w1", "5", version=5), of_size("w2", "1", version=6), version=10)
    await work_off(worker)

    same = of_size("w2", "1", version=96)
    same["metadata"]["managedFields"] = [{"manager": "somebody"}]
    relisted(streams, of_size("w1", "7", version=95), {**same, "status": {"seen": True}}, version=100)
    await work_off(worker)

    assert gate.sizes == ["5", "1", "7"]


async def test_a_handling_under_way_when_a_list_shows_other_content_is_not_remembered() -> None:
    streams = Streams()
    gate = Gate()
    worker = worker_of(streams, gate)
    streams.lists(streams.widgets, of_size("w1", "5", version=5), version=10)
    (under_way,) = await begun(worker)
    relisted(streams, of_size("w1", "7", version=95), version=100)

    gate.open.set()
    await under_way
    await work_off(worker)

    assert gate.sizes == ["5", "7"]


@pytest.mark.parametrize("version", [45, 95])
async def test_terminal_before_a_restore_does_not_stop_the_object_of_the_backup(
    version: int,
) -> None:
    """Regression: both have one generation, so the restored object counted as the one that waits for a change."""
    sizes: list[str] = []

    def handler(axn: Axn[Any]) -> None:
        sizes.append(axn.resource["spec"])
        raise Terminal("never")

    streams = Streams()
    worker = worker_of(streams, handler)
    streams.lists(streams.widgets, of_size("w1", "lost", version=90), version=91)
    await work_off(worker)

    relisted(streams, of_size("w1", "restored", version=version), version=version + 5)
    await work_off(worker)
    streams.router.queue.add(W1, Reason.CHANGED, now=time.monotonic())
    await work_off(worker)

    assert sizes == ["lost", "restored"]


async def test_what_terminal_stops_while_the_server_is_restored_does_not_stop_what_the_backup_has() -> None:
    streams, gate = Streams(), Gate()

    async def refuses(axn: Axn[Any]) -> None:
        await gate(axn)
        raise Terminal("never")

    worker = worker_of(streams, refuses)
    streams.lists(streams.widgets, of_size("w1", "lost", version=90), version=91)
    (under_way,) = await begun(worker)
    relisted(streams, of_size("w1", "restored", version=45), version=50)

    gate.open.set()
    await under_way
    await work_off(worker)

    assert gate.sizes == ["lost", "restored"]


async def test_an_object_that_is_changed_back_to_what_terminal_stopped_is_reconciled(streams: Streams) -> None:
    """The API server keeps no generation for some kinds, as for ConfigMaps, so equal content is an equal state."""
    seen: list[str] = []

    def refuses_large(axn: Axn[Any]) -> None:
        seen.append(axn.resource["spec"])
        if seen[-1] == "large":
            raise Terminal("too large")

    worker = worker_of(streams, refuses_large)
    for version, size in ((11, "large"), (12, "small"), (13, "large")):
        streams.says(streams.widgets, "MODIFIED", {**thing("w1", version=version), "spec": size})
        await work_off(worker)

    assert seen == ["large", "small", "large"]


async def test_a_status_that_a_list_shows_first_queues_nobody() -> None:
    streams = Streams()
    streams.lists(streams.widgets, of_size("w1", "5", version=5), version=10)
    streams.queued()
    relisted(streams, {**of_size("w1", "5", version=95), "status": {"seen": True}}, version=100)
    assert streams.queued() == {}


def test_a_later_list_decodes_no_object_whose_metadata_alone_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no content that could differ."""
    decoded: list[Item] = []
    streams = Streams(dataclasses.replace(WIDGET, metadata_only=True))
    listed = thing("w1", version=5)
    listed["metadata"]["generation"] = 1
    streams.lists(streams.widgets, listed, version=10)
    streams.queued()
    monkeypatch.setattr(Item, "decode", lambda item, **_: decoded.append(item) or {})

    relisted(streams, {"metadata": {**listed["metadata"], "resourceVersion": "95"}}, version=100)

    assert decoded == []
    assert streams.queued() == {}


# --- what is waited for before the first key --------------------------------------------------------------------------


async def test_a_stream_that_fails_for_long_holds_up_no_objects_of_other_kinds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: a related kind of an aggregated API that was down kept its controller from ever starting."""
    monkeypatch.setattr(router_module, "SETTLE_SECONDS", 0.05)
    handled: list[Axn[Any]] = []
    streams = Streams()
    streams.tells(streams.config_maps, watch.Reply(503, b""))
    settled = asyncio.create_task(streams.router.wait_until_synced())
    await asyncio.sleep(0.2)
    assert not settled.done(), "without objects there is nothing to go on with"

    streams.lists(streams.widgets, thing("w1", version=5), version=10)

    async with asyncio.timeout(5):
        await settled
    worker = worker_of(streams, handled.append)
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(5):
        while not handled:  # noqa: ASYNC110  a handling tells nobody
            await asyncio.sleep(0.01)
    worker.stop()
    await running
    (late, _) = [record for record in caplog.records if record.name == "bonny.engine.router"]
    assert late.__dict__["streams"] == "configmaps"
    assert not streams.config_maps.synced
    assert streams.router.children("uid-w1", owner=W1) is None, "what it would show is not known"


async def test_streams_that_come_in_time_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    streams = Streams()
    settled = asyncio.create_task(streams.router.wait_until_synced())
    streams.lists(streams.widgets, thing("w1", version=5), version=10)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not settled.done()

    streams.lists(streams.config_maps, version=10)

    async with asyncio.timeout(5):
        await settled
    assert caplog.records == []


async def test_objects_of_a_first_page_do_not_wait_for_the_whole_list() -> None:
    streams = Streams()
    settled = asyncio.create_task(streams.router.wait_until_synced())
    streams.lists(streams.config_maps, version=10)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not settled.done()

    Streams.tells(streams.widgets, first_page(thing("w1", version=5), version=10))

    async with asyncio.timeout(5):
        await settled
    assert not streams.widgets.synced
    assert streams.queued() == {W1: frozenset({Reason.ADDED})}


async def test_objects_that_are_also_related_wait_for_the_whole_list() -> None:
    """A handler that selects among them must not get a part of them."""
    widgets = Stream(cast("Any", None), WIDGET, namespace=None, options=watch.WatchOptions())
    peers = Related("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED, keys=lambda _: [])
    router = Router(primary=[widgets], owned={}, related={peers: [widgets]}, on_status=False)
    settled = asyncio.create_task(router.wait_until_synced())
    Streams.tells(widgets, first_page(thing("w1", version=5), version=10))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not settled.done()

    Streams.lists(widgets, thing("w2", version=6), version=10)

    async with asyncio.timeout(5):
        await settled


def first_page(*things: Resource, version: int) -> watch.Reply:
    """A page that is not the last one."""
    metadata = {"resourceVersion": str(version), "continue": "more"}
    return watch.Reply(200, json.dumps({"metadata": metadata, "items": things}).encode())


async def test_what_is_handled_after_a_restore_is_remembered(streams: Streams) -> None:
    gate = Gate()
    gate.open.set()
    worker = worker_of(streams, gate)
    streams.tells(streams.widgets, watch.Silent(), watch.Tick())
    streams.lists(streams.widgets, of_size("w1", "restored", version=3), version=4)
    await work_off(worker)
    streams.router.queue.add(W1, Reason.CHANGED, now=time.monotonic())
    await work_off(worker)

    assert gate.sizes == ["restored"]


class Asked:
    """The server, as of one question: whether W1 exists. The first answer is on its way until `answered`."""

    def __init__(self) -> None:
        self.questions = 0
        self.answered = asyncio.Event()

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None, cut: bool = False) -> Resource:
        self.questions += 1
        if self.questions == 1:
            await self.answered.wait()
            return thing(name, version=11)
        raise refusal(Failure(404, "NotFound", ""), verb="get", resource=f"widgets {namespace}/{name}")


async def test_a_deletion_during_the_question_whether_it_is_one_is_not_forgotten() -> None:
    """Regression: "it still exists" was taken as the answer to a deletion that came after it."""
    narrowed = dataclasses.replace(WIDGET, label_selector="tier=db")
    streams = Streams(narrowed)
    streams.lists(streams.widgets, thing("w1", version=5), version=10)
    asked, deleted = Asked(), []

    async def handled(axn: Axn[Any]) -> None:
        if axn.action is Action.DELETE:
            deleted.append(axn.resource["metadata"]["uid"])

    worker = worker_of(streams, handled, kind=narrowed, client=asked)
    await work_off(worker)
    streams.says(streams.widgets, "DELETED", thing("w1", version=11))
    (asking,) = await begun(worker)
    assert asked.questions == 1
    streams.says(streams.widgets, "ADDED", thing("w1", version=12))
    streams.says(streams.widgets, "DELETED", thing("w1", version=13))

    asked.answered.set()
    await asking
    await work_off(worker)

    assert deleted == ["uid-w1"]


async def test_add_runs_once_for_an_object_when_delete_is_due_for_two_earlier_objects_of_its_name(
    streams: Streams,
) -> None:
    """The second one is created and deleted while `delete` runs for the first one."""
    gate, calls = asyncio.Event(), []

    async def handled(axn: Axn[Any]) -> None:
        calls.append((axn.action, axn.uid))
        if axn.action is Action.DELETE:
            await gate.wait()

    worker = worker_of(streams, handled)
    streams.says(streams.widgets, "DELETED", thing("w1", version=11))
    (deleting,) = await begun(worker)
    streams.says(streams.widgets, "ADDED", thing("w1", version=12, uid="second"))
    streams.says(streams.widgets, "DELETED", thing("w1", version=13, uid="second"))
    streams.says(streams.widgets, "ADDED", thing("w1", version=14, uid="third"))
    gate.set()
    await deleting
    await work_off(worker)

    assert sorted(calls) == [(Action.ADD, "third"), (Action.DELETE, "second"), (Action.DELETE, "uid-w1")]


class PanicException(BaseException):
    """As what extensions in Rust raise."""


@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_what_is_no_exception_costs_its_object_a_turn_and_not_its_key(
    streams: Streams, in_a_thread: bool
) -> None:
    """Regression: the key was held by a worker that was gone, and the object never handled again."""

    class Panics(Widgets):
        async def reconcile(self, axn: Axn[Any]) -> None:
            raise PanicException

    class PanicsInAThread(Widgets):
        def reconcile(self, axn: Axn[Any]) -> None:  # type: ignore[override]
            raise PanicException

    worker = worker_of(streams, DelegateToController())
    worker._controller = PanicsInAThread() if in_a_thread else Panics()
    streams.says(streams.widgets, "MODIFIED", of_size("w1", "large", version=11))

    await work_off(worker)

    statistics = streams.router.queue.statistics(now=time.monotonic())
    assert (statistics.working, statistics.delayed) == (0, 1)


async def test_a_worker_is_stuck_when_all_its_slots_are_held_beyond_all_deadlines() -> None:
    """Regression: liveness did not look at the workers at all."""

    class Two(Controller[Any]):
        resource = WIDGET
        max_concurrent = 2
        timeout = 1.0

    router = Router(primary=[], owned={}, on_status=False)
    parts = {"operator": "op", "group": "example.com", "controller": Two(), "pipeline": Pipeline([])}
    worker = Worker(kind=WIDGET, router=router, client=cast("Any", None), recorder=KeptEvents(), **cast("Any", parts))
    tasks = [asyncio.create_task(asyncio.Event().wait()) for _ in range(2)]
    long_ago = time.monotonic() - 1_000.0
    worker.running = {cast("Any", tasks[0]): long_ago}
    assert not worker.stuck, "a slot is free"
    worker.running = {cast("Any", tasks[0]): long_ago, cast("Any", tasks[1]): time.monotonic()}
    assert not worker.stuck, "one of them began just now"
    worker.running = dict.fromkeys(cast("Any", tasks), long_ago)
    assert worker.stuck
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000


def deep(name: str, *, version: int, **metadata: Any) -> bytes:
    """An event of a change: nobody can decode this object."""
    made = {"apiVersion": "example.com/v1", "kind": "Widget", **thing(name, version=version)}
    made["metadata"] |= metadata
    return (
        b'{"type":"MODIFIED","object":'
        + json.dumps(made)[:-1].encode()
        + b',"spec":{"bucket":"b1","x":'
        + DEEP
        + b"}}}"
    )


@pytest.mark.parametrize("on_status", [False, True])
def test_a_change_of_what_cannot_be_decoded_queues_this_object_alone(on_status: bool) -> None:
    """Regression: the stream fell, listed everything again and queued every object, at each edit of that one."""
    streams = Streams()
    streams.router._on_status = on_status
    streams.lists(streams.widgets, thing("w1", version=5), thing("w2", version=6), version=10)
    streams.lists(streams.config_maps, version=10)
    streams.queued()

    for version in (11, 12, 13):
        streams.tells(streams.widgets, watch.Line(deep("w1", version=version)))
        assert streams.queued() == {W1: frozenset({Reason.CHANGED})}
        assert streams.widgets.current


@pytest.mark.parametrize("names", [[["a", {"b": 1}]], [[["a"], "b"]], [5], [None], {"a": 1}, "one", 5, None])
def test_names_of_any_type_cost_the_object_that_has_them_its_references_only(names: Any) -> None:
    """What an object says is whatever its schema lets through; a function of `Related` may hand it on as it is."""
    related = Related("v1", "ConfigMap", keys=lambda found: found["data"]["names"])
    widgets = Stream(cast("Any", None), WIDGET, namespace=None, options=watch.WatchOptions())
    maps = Stream(cast("Any", None), CONFIG_MAP, namespace=None, options=watch.WatchOptions())
    Router(primary=[widgets], owned={}, related={related: [maps]}, on_status=False)
    Streams.lists(widgets, thing("w1", version=5), version=10)

    Streams.lists(maps, {**thing("c", version=7), "data": {"names": names}}, version=10)

    assert maps.current


async def test_the_end_of_an_object_that_is_too_deep_waits_for_a_person(
    streams: Streams, caplog: pytest.LogCaptureFixture
) -> None:
    """No handler sees a part of it; as soon as it is flatter, its finalizer runs."""
    seen: list[tuple[Action, Any]] = []

    async def handled(axn: Axn[Any]) -> None:
        seen.append((axn.action, axn.resource["spec"]["bucket"]))

    worker = worker_of(streams, handled)
    worker._finalizers = frozenset({"example.com/cleanup"})
    leaving = {"finalizers": ["example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    for version, metadata in enumerate(({"finalizers": ["example.com/cleanup"]}, leaving), start=11):
        streams.tells(streams.widgets, watch.Line(deep("w1", version=version, **metadata)))
        await work_off(worker)
    assert seen == []
    failed = [known for known in caplog.records if known.getMessage() == "reconcile failed"]
    assert {vars(known)["error"] for known in failed} == {
        "default/w1 is nested deeper than 400 levels: make it flatter"
    }
    assert {vars(known)["action"] for known in failed} == {"add", "finalize"}

    flat = {**thing("w1", version=13), "spec": {"bucket": "b1"}}
    flat["metadata"] |= leaving
    streams.says(streams.widgets, "MODIFIED", flat)
    await work_off(worker)
    assert seen == [(Action.FINALIZE, "b1")]


async def test_an_object_that_was_too_deep_is_gone_with_one_error_and_its_name_is_free(
    streams: Streams, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[Action, str]] = []

    async def handled(axn: Axn[Any]) -> None:
        seen.append((axn.action, axn.resource["metadata"]["uid"]))

    worker = worker_of(streams, handled)
    streams.tells(streams.widgets, watch.Line(deep("w1", version=11)))
    await work_off(worker)
    streams.tells(streams.widgets, watch.Line(deep("w1", version=12).replace(b"MODIFIED", b"DELETED")))
    await work_off(worker)
    assert seen == []
    (lost,) = [known for known in caplog.records if known.getMessage() == "gave up calling delete"]
    assert "w1 is nested deeper than 400 levels" in lost.error  # type: ignore[attr-defined]

    streams.says(streams.widgets, "ADDED", thing("w1", version=13, uid="u-2"))
    await work_off(worker)
    assert seen == [(Action.ADD, "u-2")]
