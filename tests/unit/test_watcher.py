"""Watcher: what is shown to which handler, in which order; its stream is fed with the bytes a server would send."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar, cast

import pytest

from bonny.client.api import Client
from bonny.core import watch
from bonny.errors import OptionError, Retry
from bonny.kinds import List
from bonny.resource import Resource
from bonny.run.supervisor import cancelled
from bonny.servers.watcher import Watcher
from tests.support.core import line, page, thing
from tests.support.heard import Heard, heard
from tests.support.waiting import until

NO_CLIENT = Client(cast("Any", None), user_agent="tests")
TYPE = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard("bonny.watcher.handle.succeeded", "bonny.watcher.handle.failed") as listener:
        yield listener


class Pods(Watcher):
    """Notes what it is shown."""

    operation = List("v1", "Pod")

    def __init__(self) -> None:
        super().__init__(NO_CLIENT)
        self.shown: list[tuple[str, str, Any]] = []
        self.types: set[tuple[str, str]] = set()
        self.act: Callable[[str, Resource], Any] = lambda action, pod: None

    async def _note(self, action: str, pod: Resource) -> None:
        self.types.add((pod["apiVersion"], pod["kind"]))
        result = self.act(action, pod)
        if asyncio.iscoroutine(result):
            await result
        self.shown.append((action, pod["metadata"]["uid"], pod.get("status")))

    async def add(self, resource: Resource) -> None:
        await self._note("add", resource)

    async def modify(self, resource: Resource) -> None:
        await self._note("modify", resource)

    async def delete(self, resource: Resource) -> None:
        await self._note("delete", resource)

    # --- what the server says -----------------------------------------------------------------------------------------

    async def lists(self, *things: Resource, version: int = 10) -> None:
        await self.streams[0]._step(watch.Reply(200, page(*things, version=version)))
        await self.streams[0]._step(watch.Opened())

    async def says(self, event: str, pod: Resource) -> None:
        await self.streams[0]._step(watch.Line(line(event, {**TYPE, **pod})))

    async def until(self, *shown: tuple[str, str, Any]) -> None:
        """Return when exactly this was shown."""
        await until(lambda: len(self.shown) >= len(shown))
        assert self.shown == list(shown)
        assert self.types == {("v1", "Pod")}


@asynccontextmanager
async def at_work(pods: Watcher) -> AsyncIterator[None]:
    """Only the worker runs: the test is the stream."""
    running = asyncio.create_task(pods.worker.run())
    try:
        yield
    finally:
        await cancelled([running])


async def test_an_object_is_shown_when_it_comes_changes_and_goes(told: Heard) -> None:
    pods = Pods()
    await pods.lists(thing("a", status={"phase": "Pending"}))
    async with at_work(pods):
        await pods.until(("add", "uid-a", {"phase": "Pending"}))
        await pods.says("MODIFIED", thing("a", version=11, generation=1, status={"phase": "Running"}))
        await pods.until(*pods.shown[:1], ("modify", "uid-a", {"phase": "Running"}))
        await pods.says("DELETED", thing("a", version=12, generation=1, status={"phase": "Failed"}))
        await pods.until(*pods.shown[:2], ("delete", "uid-a", {"phase": "Failed"}))

    assert told.names == 3 * ["bonny.watcher.handle.succeeded"]
    assert told.events[0].metadata == {"watcher": "Pods", "object": "default/a", "action": "add"}
    assert told.events[0].measurements["duration"] >= 0


async def test_a_change_of_nothing_but_bookkeeping_is_not_shown() -> None:
    pods = Pods()
    await pods.lists(thing("a", spec={"nodeName": "n"}))
    async with at_work(pods):
        await pods.until(("add", "uid-a", None))
        await pods.says("MODIFIED", thing("a", version=11, spec={"nodeName": "n"}))
        await pods.says("ADDED", thing("b", version=12))
        await pods.until(("add", "uid-a", None), ("add", "uid-b", None))


async def test_changes_that_come_while_a_handler_runs_are_shown_as_one() -> None:
    pods, go_on = Pods(), asyncio.Event()
    pods.act = lambda action, pod: go_on.wait() if action == "add" else None
    await pods.lists(thing("a", status=0))
    async with at_work(pods):
        await until(lambda: pods.worker.running)
        for number in range(1, 6):
            await pods.says("MODIFIED", thing("a", version=10 + number, status=number))
        go_on.set()
        await pods.until(("add", "uid-a", 0), ("modify", "uid-a", 5))


async def test_the_end_of_an_object_is_shown_before_another_one_of_its_name() -> None:
    pods = Pods()
    pods.act = lambda action, pod: asyncio.sleep(0.02 if action == "delete" else 0)
    await pods.lists(thing("a", uid="u1"))
    async with at_work(pods):
        await pods.until(("add", "u1", None))
        await pods.says("DELETED", thing("a", uid="u1", version=11))
        await pods.says("ADDED", thing("a", uid="u2", version=12))
        await pods.says("DELETED", thing("a", uid="u2", version=13))
        await pods.says("ADDED", thing("a", uid="u3", version=14))
        await pods.until(("add", "u1", None), ("delete", "u1", None), ("delete", "u2", None), ("add", "u3", None))


async def test_what_raised_is_shown_again_and_holds_up_no_other(told: Heard, caplog: pytest.LogCaptureFixture) -> None:
    pods, tries = Pods(), 0

    def act(action: str, pod: Resource) -> None:
        nonlocal tries
        if pod["metadata"]["name"] == "bad":
            tries += 1
            if tries == 1:
                raise Retry("not yet", after=0.0)
            if tries == 2:
                raise ValueError("no")

    pods.act = act
    await pods.lists(thing("bad"), thing("good"))
    async with at_work(pods):
        await pods.until(("add", "uid-good", None), ("add", "uid-bad", None))

    (failed,) = told.of("bonny.watcher.handle.failed")
    assert (failed.metadata["object"], failed.metadata["action"]) == ("default/bad", "add")
    assert isinstance(failed.metadata["error"], ValueError), "asking for another try is no failure"
    assert [vars(record)["object"] for record in caplog.records] == ["default/bad"]


async def test_handlers_that_are_not_defined_are_not_called(told: Heard) -> None:
    class OnlyDeletions(Watcher):
        operation = List("v1", "Pod")
        gone: ClassVar[list[str]] = []

        def delete(self, resource: Resource) -> None:
            self.gone.append(resource["metadata"]["name"])

    pods = OnlyDeletions(NO_CLIENT)
    await Pods.lists(cast("Pods", pods), thing("a"))
    async with at_work(pods):
        await Pods.says(cast("Pods", pods), "DELETED", thing("a", version=11))
        await until(lambda: pods.gone)

    assert pods.gone == ["a"]
    assert [event.metadata["action"] for event in told.events] == ["delete"]


async def test_after_stop_nothing_more_is_shown_and_what_runs_goes_on_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods, go_on = Pods(), asyncio.Event()
    pods.act = lambda action, pod: go_on.wait()
    monkeypatch.setattr(pods.streams[0], "run", asyncio.Event().wait)
    await pods.lists(thing("a"))
    running = asyncio.create_task(pods.run())
    await until(lambda: pods.worker.running)
    pods.stop()
    await pods.says("ADDED", thing("b", version=11))
    go_on.set()
    await running

    assert pods.shown == [("add", "uid-a", None)]


async def test_a_stop_before_the_first_step_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = Pods()
    monkeypatch.setattr(pods.streams[0], "run", asyncio.Event().wait)
    await pods.lists(thing("a"))
    running = asyncio.create_task(pods.run())
    pods.stop()
    async with asyncio.timeout(10):
        await running

    assert pods.shown == []


def test_the_rules_are_what_its_own_requests_need() -> None:
    assert Pods.all_rules() == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


def test_without_an_operation_it_is_refused_in_one_sentence() -> None:
    class Nothing(Watcher): ...

    with pytest.raises(OptionError, match="Nothing has no operation"):
        Nothing(NO_CLIENT)


def test_the_worker_is_named_after_the_watcher_in_logs() -> None:
    assert Pods().worker.name == "Pods"
