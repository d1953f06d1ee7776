"""Reconciler: when its runs begin, what one object can do to others, what is told. Time is virtual but for threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest

from bonny import telemetry
from bonny.calling import HandlerTimeout
from bonny.client.api import Client
from bonny.client.errors import Unreachable
from bonny.errors import OptionError
from bonny.kinds import Kind, List
from bonny.resource import Resource
from bonny.servers.reconciler import Reconciler
from tests.support.core import thing
from tests.support.heard import Heard, heard
from tests.support.virtual import Clock

NO_CLIENT = Client(cast("Any", None), user_agent="tests")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard(*(name for name in telemetry.EVENTS if name.startswith("bonny.reconciler."))) as listener:
        yield listener


class Rounds(Reconciler):
    """Goes through the pods that the test names; what is done for each is the test's, too."""

    operation = List("v1", "Pod")
    max_concurrent = 3
    timeout = 50.0

    def __init__(
        self, *names: str, act: Callable[[str], Any] = lambda name: None, fails: Exception | None = None
    ) -> None:
        super().__init__(NO_CLIENT)
        self.names = names
        self.fails = fails
        self.act = act
        self.seen: list[tuple[float, str]] = []
        self.running = self.most = 0

    async def reconcilable_resources(self) -> AsyncIterator[Resource]:
        for name in self.names:
            yield thing(name)
        if self.fails is not None:
            raise self.fails

    async def reconcile(self, resource: Resource) -> Any:
        name = resource["metadata"]["name"]
        self.seen.append((asyncio.get_running_loop().time() - 1000, name))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            result = self.act(name)
            return await result if asyncio.iscoroutine(result) else result
        finally:
            self.running -= 1

    @property
    def times(self) -> list[float]:
        return [round(at, 6) for at, _ in self.seen]


def for_seconds(
    clock: Clock, seconds: float, reconciler: Reconciler, *, at: dict[float, Callable[[], Any]] | None = None
) -> None:
    """Let it run for so many virtual seconds, then cancel it; `at` some of them do something."""

    async def main() -> None:
        running = asyncio.create_task(reconciler.run())
        for second, act in (at or {}).items():
            await asyncio.sleep(second - (clock.now - 1000))
            act()
        await asyncio.sleep(seconds - (clock.now - 1000))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    clock.run(main)


# --- when -------------------------------------------------------------------------------------------------------------


def test_it_runs_at_once_and_then_every_thirty_seconds(clock: Clock) -> None:
    reconciler = Rounds("a")
    for_seconds(clock, 95, reconciler)
    assert reconciler.times == [0, 30, 60, 90]


def test_a_run_that_overlaps_the_next_tick_is_not_doubled(clock: Clock, told: Heard) -> None:
    reconciler = Rounds("a", "b", act=lambda name: asyncio.sleep(45))
    for_seconds(clock, 130, reconciler)
    assert reconciler.times == [0, 0, 60, 60, 120, 120]
    assert reconciler.most == 2
    assert [event.measurements["duration"] for event in told.of("bonny.reconciler.run.finished")] == [45, 45]


def test_a_scheduled_run_comes_between_the_ticks_and_moves_none(clock: Clock) -> None:
    reconciler = Rounds("a")
    at = {10.0: reconciler.schedule, 12.0: lambda: reconciler.schedule(5.0)}
    reconciler.schedule()
    for_seconds(clock, 65, reconciler, at=at)
    assert reconciler.times == [0, 10, 17, 30, 60]


def test_a_run_that_is_scheduled_while_one_is_under_way_comes_after_it(clock: Clock) -> None:
    reconciler = Rounds("a", act=lambda name: asyncio.sleep(8))
    for_seconds(clock, 29, reconciler, at={5.0: reconciler.schedule, 6.0: reconciler.schedule})
    assert reconciler.times == [0, 8]


def test_after_stop_what_is_being_handled_goes_on_and_nothing_is_taken_up(clock: Clock, told: Heard) -> None:
    reconciler = Rounds("a", "b", "c", "d", "e", act=lambda name: asyncio.sleep(8))

    async def main() -> float:
        running = asyncio.create_task(reconciler.run())
        await asyncio.sleep(2)
        reconciler.stop()
        await running
        return clock.now - 1000

    assert clock.run(main) == 16, "the fourth was on its way to a slot"
    assert [name for _, name in reconciler.seen] == ["a", "b", "c", "d"]
    assert told.events[-1].metadata["reason"] == "stopped"


def test_cancelled_it_cancels_what_is_being_handled(clock: Clock, told: Heard) -> None:
    ended = []

    async def act() -> None:
        try:
            await asyncio.sleep(40)
        finally:
            ended.append(True)

    for_seconds(clock, 2, Rounds("a", act=lambda name: act()))

    assert ended == [True]
    assert told.events[-1] == (
        "bonny.reconciler.genserver.down",
        {},
        {"reconciler": "Rounds", "reason": "CancelledError"},
    )


# --- one object and the others ----------------------------------------------------------------------------------------


def test_no_more_objects_are_handled_at_once_than_allowed(clock: Clock) -> None:
    reconciler = Rounds(*"abcdefgh", act=lambda name: asyncio.sleep(1))
    for_seconds(clock, 5, reconciler)
    assert reconciler.most == 3
    assert reconciler.times == [0, 0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        pytest.param(ValueError("no"), ValueError, id="raises"),
        pytest.param(SystemExit(1), Exception, id="exits"),
        pytest.param(asyncio.CancelledError(), Exception, id="cancels itself"),
        pytest.param(None, HandlerTimeout, id="hangs"),
    ],
)
def test_one_object_that_fails_does_not_stop_the_run(
    clock: Clock, told: Heard, caplog: pytest.LogCaptureFixture, trouble: BaseException | None, error: type[Exception]
) -> None:
    async def act(name: str) -> None:
        if name == "bad":
            if trouble is not None:
                raise trouble
            await asyncio.sleep(1e6)

    reconciler = Rounds("a", "bad", "b", "c", "d", act=act)
    for_seconds(clock, 95, reconciler)

    ends = told.of("bonny.reconciler.run.finished")
    assert len(ends) >= 1
    assert all((end.measurements["resources"], end.measurements["failed"]) == (5, 1) for end in ends)
    assert len(told.of("bonny.reconciler.reconcile.succeeded")) == 4 * len(ends) + (4 if trouble is None else 0)
    failed = told.of("bonny.reconciler.reconcile.failed")
    assert {event.metadata["object"] for event in failed} == {"default/bad"}
    assert isinstance(failed[0].metadata["error"], error)
    assert {(record.getMessage(), vars(record)["object"]) for record in caplog.records} == {
        ("reconciler failed for an object", "default/bad")
    }


async def test_a_thread_whose_time_is_over_keeps_its_object_and_its_slot_until_it_returns(told: Heard) -> None:
    calls: list[str] = []
    release = threading.Event()

    class Threads(Rounds):
        timeout = 0.05

        def reconcile(self, resource: Resource) -> None:  # type: ignore[override]
            name = resource["metadata"]["name"]
            calls.append(name)
            if name == "bad":
                release.wait(20)

    reconciler = Threads("a", "bad", "b")
    async with asyncio.timeout(20):
        await reconciler.run_once()
        await reconciler.run_once()
        assert sorted(calls) == ["a", "a", "b", "b", "bad"]
        assert len(told.of("bonny.reconciler.reconcile.failed")) == 1
        release.set()
        while calls.count("bad") < 2:
            await reconciler.run_once()
    assert isinstance(told.of("bonny.reconciler.reconcile.failed")[0].metadata["error"], HandlerTimeout)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_a_run_is_told_from_its_start_to_its_end(clock: Clock, told: Heard) -> None:
    for_seconds(clock, 29, Rounds("a", act=lambda name: asyncio.sleep(2)))

    assert told.names == [
        "bonny.reconciler.initialized",
        "bonny.reconciler.run.started",
        "bonny.reconciler.fetch.succeeded",
        "bonny.reconciler.reconcile.succeeded",
        "bonny.reconciler.run.finished",
        "bonny.reconciler.genserver.down",
    ]
    _, _, fetched, reconciled, finished, _ = told.events
    assert fetched.measurements == {"duration": 0, "resources": 1}
    assert reconciled.measurements == {"duration": 2}
    assert reconciled.metadata == {"reconciler": "Rounds", "object": "default/a"}
    assert finished.measurements == {"duration": 2, "resources": 1, "failed": 0}


@pytest.mark.parametrize("error", [Unreachable("gone"), ValueError("mine"), SystemExit(2)])
def test_an_error_of_the_fetch_is_an_event_and_the_next_run_asks_again(
    clock: Clock, told: Heard, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    reconciler = Rounds("a", "b", fails=error)
    for_seconds(clock, 35, reconciler)

    assert reconciler.times == [0, 0, 30, 30], "what came before the error was handled"
    failed = told.of("bonny.reconciler.fetch.failed")
    causes = [event.metadata["error"].__cause__ or event.metadata["error"] for event in failed]
    assert causes == [error, error]
    assert all(isinstance(event.metadata["error"], Exception) for event in failed)
    assert not told.of("bonny.reconciler.fetch.succeeded")
    assert {record.getMessage() for record in caplog.records} == {"cannot list the objects to reconcile"}


def test_what_is_no_object_ends_the_fetch_and_not_the_reconciler(clock: Clock, told: Heard) -> None:
    class Odd(Rounds):
        async def reconcilable_resources(self) -> AsyncIterator[Resource]:
            yield thing("a")
            yield {"kind": "Nameless"}

    reconciler = Odd()
    for_seconds(clock, 35, reconciler)

    assert reconciler.times == [0, 30]
    assert len(told.of("bonny.reconciler.fetch.failed")) == 2


# --- what it says of itself -------------------------------------------------------------------------------------------


def test_the_rules_are_what_its_own_requests_need() -> None:
    assert Rounds.all_rules() == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


def test_a_namespace_of_the_operation_beats_those_that_the_operator_watches() -> None:
    class Here(Rounds):
        operation = List("v1", "Pod", namespace="here")

    class Nodes(Rounds):
        operation = Kind("v1", "Node")

    class Anywhere(Reconciler):
        operation = List("v1", "Pod")

    assert Anywhere(NO_CLIENT).namespaces == (None,)
    assert Anywhere(NO_CLIENT, namespaces=("a", "b")).namespaces == ("a", "b")
    assert Here().namespaces == ("here",)
    assert Nodes().namespaces == (None,)


def test_without_an_operation_it_is_refused_in_one_sentence() -> None:
    class Nothing(Reconciler): ...

    for ask in (Nothing.all_rules, lambda: Nothing(NO_CLIENT)):
        with pytest.raises(OptionError, match=r"Nothing has no operation: write for example operation = List"):
            ask()


@pytest.mark.parametrize("name", ["frequency", "max_concurrent", "timeout"])
def test_impossible_settings_are_refused_in_one_sentence(name: str) -> None:
    rule = "1 or more" if name == "max_concurrent" else "more than 0 seconds"
    with pytest.raises(OptionError, match=rf"Odd\.{name} is 0: use {rule}"):
        type("Odd", (Reconciler,), {name: 0})
