"""Lifespan: what a part opens before its first handler and closes after its last, at a stop and at a failure, too."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Operator, Reconciler, Resource, Watcher
from bonny import sessions as lifespans
from bonny.client.config import Connection
from bonny.errors import OptionError, UsageError
from bonny.lifespan import HasLifespan
from bonny.run.config import Config
from bonny.run.process import Process
from bonny.scheduler import Scheduler
from bonny_dev import testing
from tests.support.core import thing
from tests.support.waiting import until

CONFIG_MAP = Kind("v1", "ConfigMap")
# What happened, in order: the parts of a test write here.
heard: list[str] = []


@pytest.fixture(autouse=True)
def _silence() -> None:
    heard.clear()


class Nowhere:
    """A cluster that nobody answers for."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="http://127.0.0.1:1")


class Opens(HasLifespan):
    """Writes down when it is entered and left."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        name = type(self).__name__
        heard.append(f"{name} enters")
        await self.opening()
        self.session = f"the session of {name}"
        try:
            yield
        finally:
            heard.append(f"{name} leaves")
            await self.closing()

    async def opening(self) -> None: ...

    async def closing(self) -> None: ...


class Maps(Opens, Controller[Any]):
    resource = CONFIG_MAP

    async def reconcile(self, axn: Axn[Any]) -> None:
        heard.append(self.session)


class Rounds(Opens, Reconciler):
    operation = CONFIG_MAP

    async def reconcile(self, resource: Resource) -> None:
        heard.append(self.session)


class Watches(Opens, Watcher):
    operation = CONFIG_MAP


class Chooses(Opens, Scheduler):
    name = "chooses"

    async def select_node_for_pod(self, pod: Any, nodes: Any) -> Any:
        heard.append(self.session)
        return next(iter(nodes), None)


def process(*parts: Any) -> Process:
    return Process(
        Operator(name="op", group="example.com", controllers=parts),
        Config(http_host="127.0.0.1", http_port=0),
        Nowhere(),
    )


async def test_each_part_is_entered_before_anything_is_watched_and_left_at_the_stop() -> None:
    made, stop = process(Maps, Rounds, Watches, Chooses), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await until(lambda: made._lasting)
    entered = list(heard)
    stop.set()
    await running

    assert sorted(entered) == [f"{name} enters" for name in ("Chooses", "Maps", "Rounds", "Watches")]
    assert sorted(heard[4:]) == [f"{name} leaves" for name in ("Chooses", "Maps", "Rounds", "Watches")]
    assert not made.lifespans.failed


async def test_a_part_is_left_after_its_last_handler_and_the_work_of_the_term() -> None:
    class Busy(Opens, Reconciler):
        operation = CONFIG_MAP

        async def reconcilable_resources(self) -> AsyncIterator[Resource]:
            yield thing("a")

        async def reconcile(self, resource: Resource) -> None:
            heard.append("begins")
            await made.lifespans.stop.wait()
            for _ in range(20):  # longer than it takes to close what nothing uses
                await asyncio.sleep(0)
            heard.append("ends")

    made, stop = process(Busy), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await until(lambda: "begins" in heard)
    stop.set()
    await running

    assert heard == ["Busy enters", "begins", "ends", "Busy leaves"]


async def test_what_cannot_be_opened_stops_the_operator_with_one_line_and_nothing_half_started(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fails(Opens, Controller[Any]):
        resource = Kind("v1", "Secret")

        async def opening(self) -> None:
            await until(lambda: "Maps enters" in heard)
            raise ConnectionRefusedError("nobody listens")

        async def reconcile(self, axn: Axn[Any]) -> None: ...

    made, stop = process(Maps, Fails), asyncio.Event()
    before = asyncio.all_tasks()
    await made.run(stop)

    assert made.lifespans.failed
    assert sorted(heard) == ["Fails enters", "Maps enters", "Maps leaves"]
    (line,) = [vars(each) for each in caplog.records if each.levelno >= logging.WARNING]
    assert line["message"] == "a lifespan failed"
    assert (line["part"], line["error"], line["then"]) == ("Fails", "nobody listens", "the operator stops")
    assert line["exc_info"][0] is ConnectionRefusedError
    assert made._lasting == {}, "nothing was watched"
    assert asyncio.all_tasks() == before


async def test_a_wrong_setting_is_one_sentence_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Unset(Maps):
        async def opening(self) -> None:
            raise UsageError("DNS_URL is not set: write the address of the DNS API into it")

    made = process(Unset)
    await made.run(asyncio.Event())
    (line,) = [vars(each) for each in caplog.records if each.levelno >= logging.WARNING]
    assert (line["error"], line["exc_info"]) == (
        "DNS_URL is not set: write the address of the DNS API into it",
        None,
    )


async def test_an_opening_that_hangs_has_the_timeout_of_the_class(caplog: pytest.LogCaptureFixture) -> None:
    class Hangs(Maps):
        timeout = 0.01

        async def opening(self) -> None:
            await asyncio.Event().wait()

    made = process(Hangs)
    await made.run(asyncio.Event())

    assert made.lifespans.failed
    (line,) = [vars(each) for each in caplog.records if each.message == "a lifespan failed"]
    assert line["error"] == "the handler did not return within 0.01 s"


async def test_a_stop_does_not_wait_for_an_opening() -> None:
    class Hangs(Maps):
        async def opening(self) -> None:
            await asyncio.Event().wait()

    made, stop = process(Hangs), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await until(lambda: heard)
    assert "Hangs: its lifespan is not entered" in made.readiness().lines
    assert not made.readiness().ok
    assert made.health().ok
    stop.set()
    await running

    assert not made.lifespans.failed, "a stop is not a failure"
    assert made._lasting == {}


async def test_a_lifespan_that_ends_by_itself_stops_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    """A task group of user code, such as one that keeps a connection alive, cancels what surrounds it."""
    lost = asyncio.Event()

    class Keeps(Controller[Any]):
        resource = CONFIG_MAP

        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.keep_alive())
                yield

        async def keep_alive(self) -> None:
            await lost.wait()
            raise ConnectionResetError("the connection is lost")

        async def reconcile(self, axn: Axn[Any]) -> None: ...

    made = process(Keeps)
    running = asyncio.create_task(made.run(asyncio.Event()))
    await until(lambda: made._lasting)
    lost.set()
    await running

    assert made.lifespans.failed
    assert "a lifespan failed" in [each.message for each in caplog.records]


async def test_what_fails_at_the_end_is_logged_and_is_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    class Breaks(Maps):
        async def closing(self) -> None:
            raise ConnectionResetError("gone already")

    made, stop = process(Breaks), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await until(lambda: made._lasting)
    stop.set()
    await running

    assert not made.lifespans.failed
    (line,) = [vars(each) for each in caplog.records if each.message == "a lifespan failed"]
    assert (line["error"], line["then"]) == ("gone already", "nothing: it was about to end")


async def test_a_closing_that_hangs_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifespans, "LEAVE_SECONDS", 0.01)

    class Hangs(Maps):
        async def closing(self) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                heard.append("cancelled")

    made, stop = process(Hangs), asyncio.Event()
    running = asyncio.create_task(made.run(stop))
    await until(lambda: made._lasting)
    stop.set()
    await running

    assert heard[-1] == "cancelled"


async def test_a_run_that_is_cancelled_leaves_what_it_entered() -> None:
    made = process(Maps)
    running = asyncio.create_task(made.run(asyncio.Event()))
    await until(lambda: made._lasting)
    running.cancel()
    await asyncio.wait([running])

    assert heard == ["Maps enters", "Maps leaves"]


async def test_the_servers_of_a_new_term_have_lifespans_of_their_own() -> None:
    """A server has an instance for each term; a controller has one for the process."""
    made = process(Maps, Rounds)
    made._assemble(await _client())
    made.lifespans.stop = asyncio.Event()
    await made.lifespans.enter([*made._controllers, *made.servers])
    await made._renew_servers()

    assert sorted(heard[:2]) == ["Maps enters", "Rounds enters"]
    assert heard[2:] == ["Rounds leaves", "Rounds enters"]
    await made.lifespans.leave()
    assert sorted(heard[4:]) == ["Maps leaves", "Rounds leaves"]


async def test_a_new_term_without_servers_leaves_nothing() -> None:
    made = process(Maps)
    made._assemble(await _client())
    made.lifespans.stop = asyncio.Event()
    await made.lifespans.enter(made._controllers)
    await made._renew_servers()
    assert heard == ["Maps enters"]
    await made.lifespans.leave()


async def _client() -> Any:
    return process().connected()


@pytest.mark.parametrize("base", [Controller, Reconciler, Watcher, Scheduler])
def test_a_forgotten_decorator_is_named_where_the_class_is_written(base: type) -> None:
    async def generator(self: Any) -> AsyncIterator[None]:
        yield

    async def coroutine(self: Any) -> None: ...

    for wrong in (generator, coroutine):
        with pytest.raises(OptionError, match=r"^Wrong.lifespan is not a context manager: write @asynccontextmanager"):
            type("Wrong", (base,), {"lifespan": wrong, "resource": CONFIG_MAP, "operation": CONFIG_MAP})


async def test_handler_tests_enter_and_leave_it() -> None:
    await testing.handle(Maps, thing("a"))
    await testing.reconcile(Rounds, thing("a"))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await testing.schedule(Chooses, thing("a"), nodes=[node])

    assert heard == [
        line
        for name in ("Maps", "Rounds", "Chooses")
        for line in (f"{name} enters", f"the session of {name}", f"{name} leaves")
    ]


async def test_an_error_of_a_handler_test_leaves_it_too() -> None:
    class Raises(Maps):
        async def reconcile(self, axn: Axn[Any]) -> None:
            raise ValueError(self.session)

    with pytest.raises(ValueError, match="the session of Raises"):
        await testing.handle(Raises, thing("a"))
    assert heard == ["Raises enters", "Raises leaves"]
