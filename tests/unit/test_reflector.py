"""Reflector: how the shell around the watch rules carries their steps out; it is fed by hand, nothing is opened."""

from __future__ import annotations

from typing import Any, cast

from bonny.core import watch
from bonny.core.store import Delta
from bonny.kinds import Kind
from bonny.servers.reflector import DELTAS_AT_ONCE, Reflector
from tests.support.core import page, thing

SECRET = Kind("v1", "Secret")


class Listener:
    """Notes what it is told, and whether the stream called itself in sync then."""

    def __init__(self) -> None:
        self.seen_keys: list[str] = []
        self.in_sync: set[bool] = set()
        self.advances = 0

    def seen(self, source: Reflector, delta: Delta) -> None:
        self.seen_keys.append(delta.key.name)
        self.in_sync.add(source.synced)

    def advanced(self, source: Reflector) -> None:
        self.advances += 1

    def restored(self, source: Reflector) -> None:
        raise AssertionError


def pauses(reflector: Reflector, event: watch.Event) -> int:
    """Carry one step out; how often it let others have their turn."""
    step = reflector._step(event)
    count = 0
    while True:
        try:
            step.send(None)
        except StopIteration:
            return count
        count += 1


def followed(listener: Listener) -> Reflector:
    made = Reflector(cast("Any", None), SECRET, namespace=None, options=watch.WatchOptions())
    made.subscribe(listener)
    return made


def test_a_sweep_of_many_objects_does_not_hold_the_loop() -> None:
    listener = Listener()
    reflector = followed(listener)
    objects = 4 * DELTAS_AT_ONCE
    assert pauses(reflector, watch.Reply(200, page(*(thing(f"s{n}") for n in range(objects)), version=10))) == 4
    pauses(reflector, watch.Silent())
    pauses(reflector, watch.Tick())

    assert pauses(reflector, watch.Reply(200, page(version=11))) == 4

    assert len(listener.seen_keys) == 2 * objects
    assert len(reflector.store) == 0


def test_a_stream_calls_itself_in_sync_only_after_everybody_saw_its_first_list() -> None:
    listener = Listener()
    reflector = followed(listener)

    pauses(reflector, watch.Reply(200, page(thing("a"), thing("b"), version=10)))

    assert listener.in_sync == {False}
    assert (reflector.synced, listener.advances) == (True, 1)
