"""The core as a whole, in virtual time: stream, store, router, queue, records and worker against the protocol.

hypothesis changes the server, cuts the stream, lets time pass, and decides when a handling ends and how. Whatever the
order: the last state of every object is handled, no key is held twice at a time, a failed one comes back, and `delete`
succeeds once for every object that is gone, and runs for none that only left the selection. That holds also when the
server is restored from a backup and goes on above all versions that were seen: old generations then stand for new
content.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bonny import Action, Axn, Controller, Kind, Retry, Terminal
from bonny.client.errors import refusal
from bonny.core import watch
from bonny.core.objects import Failure
from bonny.core.queue import Reason, Work
from bonny.core.watch import (
    Broken,
    Closed,
    Command,
    Line,
    ListPage,
    Opened,
    Pause,
    Silent,
    Tick,
    Watch,
    WatchInput,
    WatchOptions,
)
from bonny.engine import router as router_module
from bonny.engine import stream as stream_module
from bonny.engine import worker as worker_module
from bonny.engine.router import Router
from bonny.engine.stream import Stream
from bonny.engine.worker import DELETE_SECONDS, Worker
from bonny.kinds import Scope
from bonny.pipeline import Pipeline
from bonny.resource import Key, Resource
from tests.support.effort import examples
from tests.support.protocol import Server
from tests.support.recorder import KeptEvents

NAMES = st.sampled_from(["a", "b", "c"])
MAX_CONCURRENT = 2
START = 1000.0
# Longer than any wait of a key, shorter than the period after which everything is handled anew.
LONGEST_WAIT = 400.0
CLOCK = SimpleNamespace(monotonic=lambda: CLOCK.now, now=START)


@pytest.fixture(autouse=True)
def _virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (router_module, stream_module, worker_module):
        monkeypatch.setattr(module, "time", CLOCK)
    for module in (stream_module, worker_module):
        monkeypatch.setattr(module, "random", SimpleNamespace(random=lambda: 0.5))


class Things(Controller[Any]):
    """What is handled; the test stands in for its handlers."""

    resource = Kind("example.com/v1", "Thing", plural="things", scope=Scope.NAMESPACED)

    async def reconcile(self, axn: Axn[Any]) -> None: ...

    async def delete(self, axn: Axn[Any]) -> None: ...


@dataclass
class Asked:
    """The one request that a worker makes by itself: does the object exist?"""

    server: Server
    left: set[str] = field(default_factory=set)
    """UIDs that had left the selection and existed when the worker asked, and were not seen in it since: that they
    ended later is known to nobody."""

    async def get(self, kind: Kind, name: str, *, namespace: str | None = None, cut: bool = False) -> Resource:
        found = self.server.existing().get(name)
        if found is None:
            raise refusal(Failure(404, "NotFound", "not found"), verb="get", resource=f"things {namespace}/{name}")
        self.left.add(found["metadata"]["uid"])
        return found


@dataclass
class Running:
    """A handling that waits for hypothesis to say how it ends."""

    axn: Axn[Any]
    outcome: asyncio.Future[str] = field(default_factory=asyncio.Future)


class Core(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        CLOCK.now = START
        self.loop = asyncio.new_event_loop()
        self.server = Server()
        self.running: dict[Key, Running] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.seen_uids: set[str] = set()
        self.handled: dict[str, tuple[str, Any]] = {}
        """By name: UID and content of the last handling that succeeded, or ended for good."""

        self.deleted: Counter[str] = Counter()
        self.given_up: set[str] = set()
        self.revived: set[str] = set()
        """UIDs that a restore brought back: until their stream shows them again, `delete` may run for the first end."""

        self.handlings = 0
        self.violations: list[str] = []
        """What handlings found wrong; raised there, it would only be one more failure that is tried again."""

    @initialize(narrowed=st.booleans(), there=st.sampled_from(["", "a", "abc"]))
    def begin(self, narrowed: bool, there: str = "") -> None:
        """Some objects are `there` and listed, so that what follows meets them at once."""
        kind = Kind(
            "example.com/v1", "Thing", plural="things", scope=Scope.NAMESPACED, label_selector="a=b" if narrowed else ""
        )
        self.narrowed = narrowed
        self.asked = Asked(self.server)
        client = cast("Any", self.asked)
        options = WatchOptions(page_size=2)
        self.stream = Stream(client, kind, namespace=None, options=options)
        self.router = Router(primary=[self.stream], owned={}, on_status=False)
        self.worker = Worker(
            operator="o",
            group="example.com",
            controller=Things(),
            kind=kind,
            client=client,
            recorder=KeptEvents(),
            router=self.router,
            pipeline=Pipeline([self.handle]),
        )
        self.command: Command = watch.start(watch.WatchState(limit=options.page_size), options).command
        for name in there:
            self.server.write(name)
        while there and isinstance(self.command, ListPage):
            self.tell(self.server.list(self.command.limit, self.command.continue_token))

    # --- the server's side --------------------------------------------------------------------------------------------

    @rule(name=NAMES)
    def write(self, name: str) -> None:
        self.server.write(name)

    @precondition(lambda self: self.server.existing())
    @rule(data=st.data(), again=st.booleans())
    def delete(self, data: st.DataObject, again: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.server.existing())))
        self.server.delete(name)
        if again:
            self.server.write(name)

    @precondition(lambda self: self.narrowed and self.server.existing())
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        """Into the selection, or out of it."""
        self.server.move(data.draw(st.sampled_from(sorted(self.server.existing()))))

    @rule()
    def compact(self) -> None:
        self.server.compact()

    @precondition(lambda self: not self.narrowed)
    @rule(data=st.data(), name=NAMES, ends=st.booleans())
    def rewrite(self, data: st.DataObject, name: str, ends: bool) -> None:
        """Something happens, is perhaps seen and handled, and lost in a restore; then something else happens."""
        backup = self.server.back_up()
        if ends and name in self.server.existing():
            self.server.delete(name)
        else:
            self.server.write(name)
        for _ in range(data.draw(st.integers(0, 3))):
            self.follow(data)
            self.work(data)
        before = self.server.uids()
        self.server.restore(backup, bump=True)
        self.revived |= self.server.uids() - before
        self.server.write(name)

    # --- the stream ---------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        """Carry out the stream's command; the answer may be cut anywhere."""
        match self.command:
            case Pause(seconds):
                CLOCK.now += seconds
                self.tell(Tick())
            case ListPage(limit, token):
                lost = data.draw(st.sampled_from([False, False, False, True]))
                self.tell(Broken("reset") if lost else self.server.list(limit, token))
            case Watch(version):
                self.tell(Opened())
                lines = self.server.events(int(version))
                for one in lines[: data.draw(st.integers(0, len(lines)))]:
                    self.tell(Line(one))
                    if self.command is not None:
                        return
                    if data.draw(st.booleans()):
                        self.work(data)
                self.tell(data.draw(st.sampled_from([Closed(), Silent(), Broken("reset")])))

    def tell(self, event: WatchInput) -> None:
        self.command = self.loop.run_until_complete(self.stream._step(event))
        held = {item.meta.uid for item in self.stream.store}
        self.seen_uids |= held
        self.asked.left -= held

    # --- the worker ---------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        """Hand keys out, and let handlings end."""
        for _ in range(data.draw(st.integers(1, 6))):
            if self.running and data.draw(st.booleans()):
                key = data.draw(st.sampled_from(sorted(self.running)))
                self.end(key, data.draw(st.sampled_from(["ok", "ok", "writes", "raises", "retries", "never again"])))
            elif len(self.tasks) < MAX_CONCURRENT:
                self.take()

    def take(self) -> Work[Key] | None:
        work = self.router.queue.take(now=CLOCK.now)
        if work is not None:
            task = self.loop.create_task(self.worker._handle(work))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
            self.settle()
        return work

    def end(self, key: Key, outcome: str) -> None:
        self.running[key].outcome.set_result(outcome)
        self.settle()

    def settle(self) -> None:
        """Let the loop do what it can do by now."""
        for _ in range(10):
            self.loop.run_until_complete(asyncio.sleep(0))

    async def handle(self, axn: Axn[Any]) -> None:
        """The whole pipeline: what the handler does is up to hypothesis."""
        self.check(axn)
        self.handlings += 1
        name, uid = axn.key.name, axn.resource["metadata"]["uid"]
        outcome = await self.until_told(axn)
        if outcome == "writes":
            outcome = await self.write_status(axn)
        match outcome:
            case "raises":
                raise ValueError("no")
            case "retries":
                raise Retry("not yet", after=1.0)
            case "never again" if axn.action is Action.DELETE:
                self.given_up.add(uid)
                raise Terminal("never")
            case "never again":
                self.handled[name] = (uid, axn.resource["spec"])
                raise Terminal("never")
        if axn.action is Action.DELETE:
            self.deleted[uid] += 1
        else:
            self.handled[name] = (uid, axn.resource["spec"])

    def check(self, axn: Axn[Any]) -> None:
        """Whether the action fits what was done before."""
        name, uid = axn.key.name, axn.resource["metadata"]["uid"]
        if uid in self.revived:
            return
        if axn.action is Action.DELETE:
            if uid in self.server.uids():
                self.violations.append(f"delete ran for {uid}, which exists")
            if self.deleted[uid] or uid in self.given_up:
                self.violations.append(f"delete ran again for {uid}")
        elif axn.action is not Action.ADD and self.handled.get(name, ("", None))[0] != uid:
            self.violations.append(f"{uid} is called known and was never handled")

    async def until_told(self, axn: Axn[Any]) -> str:
        if axn.key in self.running:
            self.violations.append(f"{axn.key} is held by two workers")
        self.running[axn.key] = Running(axn)
        try:
            return await self.running[axn.key].outcome
        finally:
            del self.running[axn.key]

    async def write_status(self, axn: Axn[Any]) -> str:
        """A write of our own, whose event may come before its answer."""
        if axn.resource["metadata"]["uid"] not in self.server.uids():
            return "ok"
        with axn.context.writing(self.stream.kind, axn.key) as wrote:
            version = self.server.write_status(axn.key.name)
            outcome = await self.until_told(axn)
            wrote(version)
        return "ok" if outcome == "writes" else outcome

    @rule(seconds=st.sampled_from([0.1, 1.0, 6.0, 60.0]))
    def wait(self, seconds: float) -> None:
        CLOCK.now += seconds

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def no_handling_found_anything_wrong(self) -> None:
        assert self.violations == []

    def teardown(self) -> None:
        """From now on everything succeeds: in the end nothing is left to do, and everything was done."""
        try:
            self.catch_up()
            self.work_off()
            expected = {name: (found["metadata"]["uid"], found["spec"]) for name, found in self.server.objects.items()}
            assert {name: self.handled.get(name) for name in expected} == expected
            gone = self.seen_uids - self.server.uids()
            too_late = CLOCK.now - START > DELETE_SECONDS
            deleted = (set(self.deleted) | self.given_up) - self.revived
            assert too_late or gone - self.asked.left - self.revived <= deleted <= gone
            self.rests()
            assert self.violations == []
        finally:
            for task in self.tasks:
                task.cancel()
            self.settle()
            self.loop.close()

    def rests(self) -> None:
        """What is looked at again and has not changed is not handled again."""
        before = self.handlings
        for key in list(self.stream.store.keys()):
            self.router.queue.add(key, Reason.CHANGED, now=CLOCK.now)
        self.work_off()
        assert self.handlings == before

    def catch_up(self) -> None:
        for _ in range(100):
            match self.command:
                case Pause():
                    self.tell(Tick())
                case ListPage(limit, token):
                    self.tell(self.server.list(limit, token))
                case Watch(version):
                    self.tell(Opened())
                    for one in self.server.events(int(version)):
                        self.tell(Line(one))
                        if self.command is not None:
                            break
                    else:
                        return
        raise AssertionError("the stream never caught up")

    def work_off(self) -> None:
        """Bounded: what comes back without end would be a busy loop."""
        for _ in range(200):
            if self.running:
                self.end(min(self.running), "ok")
            elif self.take() is None:
                due = self.router.queue.next_due()
                if due is None or due - CLOCK.now > LONGEST_WAIT:
                    assert not self.tasks
                    return
                CLOCK.now = max(CLOCK.now, due)
        raise AssertionError("there is always something to do")


Core.TestCase.settings = settings(max_examples=examples(300), stateful_step_count=60, deadline=None)
test_whatever_happens_in_whichever_order_everything_is_handled_in_the_end = Core.TestCase


def test_an_object_whose_end_a_lagging_stream_shows_twice_is_deleted_once() -> None:
    """Regression: it left the selection, came back and ended; the server knew it before the stream showed it."""
    core = Core()
    core.begin(narrowed=True)
    core.server.write("a")
    core.tell(core.server.list(2, ""))
    assert isinstance(core.command, Watch)
    listed = int(core.command.version)
    core.tell(Opened())
    core.server.move("a")
    core.server.move("a")
    core.server.delete("a")
    left, *later = core.server.events(listed)
    core.tell(Line(left))
    core.take()
    core.end(Key("default", "a"), "ok")
    assert core.deleted == {"a-1": 1}

    for event in later:
        core.tell(Line(event))
    core.tell(Closed())

    core.teardown()
    assert core.handlings == 1
