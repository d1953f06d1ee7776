"""A stream and its store against the protocol: whatever is cut, lost, compacted or restored, they end up equal.

`Server` is the protocol as plain values: objects, a log of events, pages of a snapshot. hypothesis decides what is
changed on it, how much of each answer arrives, and when.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from bonny.core import watch
from bonny.core.objects import Item
from bonny.core.store import Store
from bonny.core.watch import (
    Broken,
    Closed,
    Line,
    ListPage,
    Opened,
    Pause,
    Reply,
    Rewritten,
    Silent,
    Sweep,
    Tick,
    TooLarge,
    Watch,
    WatchOptions,
)
from bonny.resource import Key
from tests.support.core import Led, bookmark, status
from tests.support.effort import examples
from tests.support.protocol import Backup, Server

EXPIRED = msgspec.json.encode(status(410, "Expired"))
NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


class History(RuleBasedStateMachine):
    """Rules change the server, or let the stream do one thing with an outcome of hypothesis' choice."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.led = Led(WatchOptions(page_size=2))
        self.store = Store()
        self.mirror: dict[Key, Item] = {}
        self.ends: Counter[str] = Counter()
        """How often each UID was told to be gone."""
        self.seen: set[str] = set()
        self.backup: Backup | None = None
        self.rewound = False
        """Restored, and not listed since. A server that gets as far as it was before until then cannot be told from one
        that was never restored, so the rules do not let it."""

    # --- the server's side --------------------------------------------------------------------------------------------

    @property
    def free(self) -> bool:
        # A recreation takes two versions.
        return not self.rewound or self.server.version + 2 < self.led.state.newest

    @precondition(lambda self: self.free)
    @rule(name=NAMES)
    def write(self, name: str) -> None:
        self.server.write(name)

    @precondition(lambda self: self.free and self.server.objects)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.server.delete(data.draw(st.sampled_from(sorted(self.server.objects))))

    @precondition(lambda self: self.free and self.server.objects)
    @rule(data=st.data())
    def recreate(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.server.objects)))
        self.server.delete(name)
        self.server.write(name)

    @rule()
    def compact(self) -> None:
        self.server.compact()

    @precondition(lambda self: self.backup is None)
    @rule()
    def back_up(self) -> None:
        self.backup = self.server.back_up()

    @precondition(lambda self: self.backup is not None)
    @rule(bump=st.booleans())
    def restore(self, bump: bool) -> None:
        """From the backup; without `bump` the versions fall."""
        assert self.backup is not None
        self.server.restore(self.backup, bump=bump)
        self.backup = None
        self.rewound = self.rewound or not bump
        # Whose end was told is there again, and unseen.
        for resource in self.server.objects.values():
            if self.ends.pop(resource["metadata"]["uid"], 0):
                self.seen.discard(resource["metadata"]["uid"])

    # --- the stream's side --------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """Carry out the command; the answer may be cut anywhere."""
        match self.led.command:
            case Pause():
                self.tell(Tick())
            case ListPage(limit, token):
                lost = data.draw(st.sampled_from([None, None, None, Broken("reset"), TooLarge()]))
                self.tell(lost or self.server.list(limit, token))
            case Watch(version):
                self.watch(int(version), data)

    def watch(self, version: int, data: st.DataObject) -> None:
        refused = data.draw(st.sampled_from([None, None, None, Broken("refused"), Reply(503, b""), Reply(404, b"")]))
        if refused is not None:
            self.tell(refused)
            return
        self.tell(Opened())
        lines = self.server.events(version)
        arrives = data.draw(st.integers(0, len(lines)))
        for one in lines[:arrives]:
            self.tell(Line(one))
            if self.led.command is not None:
                return
        if arrives == len(lines) and self.server.version >= version and data.draw(st.booleans()):
            self.tell(Line(bookmark(self.server.version)))
        end = data.draw(st.sampled_from([Closed(), Silent(), Broken("reset"), Line(b'{"type":"ADDED","obj')]))
        self.led.now += data.draw(st.sampled_from([0.0, 5.0, 215.0]))
        self.tell(end)

    def tell(self, event: Any) -> None:
        self.led.tell(event)
        for change in self.led.changes:
            if isinstance(change, Sweep):
                self.rewound = False
            for delta in self.store.apply(change):
                self.differ(*delta)
        self.led.changes.clear()
        if self.store.rewritten:
            self.store.rewritten = False
            self.tell(Rewritten())

    def differ(self, key: Key, old: Item | None, new: Item | None, live: bool) -> None:
        """What a subscriber concludes from one difference."""
        before = self.mirror.pop(key, None)
        assert (before is None) == (old is None)
        if new is not None:
            self.mirror[key] = new
            self.seen.add(new.meta.uid)
        if old is None or before is None:
            return
        assert before.meta.uid == old.meta.uid
        if new is None or new.meta.uid != old.meta.uid:
            self.ends[old.meta.uid] += 1
        if new is None and live:
            assert old.decode() == self.server.last[old.meta.uid]

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def no_end_is_told_twice(self) -> None:
        assert all(count == 1 for count in self.ends.values())

    @invariant()
    def a_subscriber_who_adds_up_knows_the_store(self) -> None:
        assert self.mirror == {item.key: item for item in self.store}

    def teardown(self) -> None:
        """Let the stream catch up: the store equals the server, and every end was noticed."""
        self.catch_up()
        assert {key.name: item.decode() for key, item in self.mirror.items()} == self.server.objects
        there = {resource["metadata"]["uid"] for resource in self.server.objects.values()}
        assert set(self.ends) - there == self.seen - there
        self.no_end_is_told_twice()

    def catch_up(self) -> None:
        for _ in range(100):
            match self.led.command:
                case Pause():
                    self.tell(Tick())
                case ListPage(limit, token):
                    self.tell(self.server.list(limit, token))
                case Watch(version) if int(version) > self.server.version:
                    # A version of the server's future: silence.
                    self.tell(Opened())
                    self.tell(Silent())
                case Watch(version):
                    self.tell(Opened())
                    for one in self.server.events(int(version)):
                        self.tell(Line(one))
                        if self.led.command is not None:
                            break
                    else:
                        return
        raise AssertionError("the stream never caught up")


History.TestCase.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
test_whatever_is_cut_lost_or_restored_the_store_becomes_what_the_server_has = History.TestCase


def test_the_model_of_the_server_pages_like_one() -> None:
    server = Server()
    for name in "abc":
        server.write(name)

    first = server.list(2, "")
    assert isinstance(first, Reply)
    led = Led(WatchOptions(page_size=2))
    led.tell(first)
    assert isinstance(led.command, ListPage)
    server.delete("c")
    led.tell(server.list(2, led.command.continue_token))

    assert [change.item.key.name for change in led.changes if isinstance(change, watch.Put)] == ["a", "b", "c"]
    assert led.state.version == 4
