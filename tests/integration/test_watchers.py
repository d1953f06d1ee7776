"""Watchers on a real API server, with the rights that their rules ask for, and what streams tell of themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bonny import List, Resource, Watcher, telemetry
from bonny.core.watch import WatchOptions
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Cut, Drop, Fault, Inject, Respond, Stall, is_list, is_watch
from tests.support.core import line, status
from tests.support.heard import Heard, heard
from tests.support.place import Place, place
from tests.support.waiting import running, until


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard(*(name for name in telemetry.EVENTS if name.startswith("bonny.watcher."))) as listener:
        yield listener


class PodLifecycleLogger(Watcher):
    """Notes what happens to pods, and their phase."""

    operation = List("v1", "Pod")

    def __init__(self, here: Place) -> None:
        super().__init__(here.client, namespaces=(here.namespace,))
        self.log: list[tuple[str, str, str]] = []

    def log_event(self, type: str, pod: Resource) -> None:  # noqa: A002  as in the original
        self.log.append((type, pod["metadata"]["name"], pod["status"]["phase"]))

    async def add(self, pod: Resource) -> None:
        self.log_event("add", pod)

    async def modify(self, pod: Resource) -> None:
        self.log_event("modify", pod)

    def delete(self, pod: Resource) -> None:
        self.log_event("delete", pod)


class Selected(PodLifecycleLogger):
    """Only pods with a label."""

    operation = List("v1", "Pod", label_selector="tier=db")


class Impatient(PodLifecycleLogger):
    """Its watches last a second, and a silent one two."""

    watch_options = WatchOptions(timeout=(1, 1), grace=1.0)


async def test_the_lifecycle_of_pods_is_logged_status_included(sandbox: Sandbox, told: Heard) -> None:
    async with place(sandbox, PodLifecycleLogger.all_rules()) as here:
        here.pod("before")
        logger = PodLifecycleLogger(here)
        async with running(logger.run):
            await until(lambda: logger.log == [("add", "before", "Pending")])
            here.pod("a")
            await until(lambda: ("add", "a", "Pending") in logger.log)
            here.set_phase("a", "Running")
            await until(lambda: ("modify", "a", "Running") in logger.log)
            here.delete("Pod", "a")
            await until(lambda: ("delete", "a", "Running") in logger.log)

    assert [entry[0] for entry in logger.log if entry[1] == "a"] == ["add", "modify", "delete"]
    handled = told.of("bonny.watcher.handle.succeeded")
    assert [(event.metadata["action"], event.metadata["object"]) for event in handled[1:]] == [
        (action, f"{here.namespace}/a") for action in ("add", "modify", "delete")
    ]
    assert handled[0].metadata["watcher"] == "PodLifecycleLogger"


async def test_changes_in_a_gap_of_the_watch_are_shown_afterwards(sandbox: Sandbox) -> None:
    async with place(sandbox, PodLifecycleLogger.all_rules()) as here:
        logger = PodLifecycleLogger(here)
        async with running(logger.run):
            for name in ("a", "b"):
                here.pod(name)
            await until(lambda: len(logger.log) == 2)
            gone = Inject(line("ERROR", status(410, "Expired")) + b"\n", end=True)
            here.proxy.add(Fault(gone, on=is_watch))
            here.proxy.add(hole := Fault(Respond(503), on=is_list, times=None))
            here.proxy.cut_all()
            await until(lambda: hole.hits)
            here.delete("Pod", "a")
            here.set_phase("b", "Running")
            here.proxy.remove(hole)
            await until(lambda: len(logger.log) == 4)

    assert set(logger.log[2:]) == {("delete", "a", "Pending"), ("modify", "b", "Running")}


async def test_an_object_that_leaves_the_selection_is_not_deleted(sandbox: Sandbox) -> None:
    async with place(sandbox, Selected.all_rules()) as here:
        logger = Selected(here)
        async with running(logger.run):
            here.pod("leaves", tier="db")
            here.pod("goes", tier="db")
            await until(lambda: len(logger.log) == 2)
            here.pod("leaves", tier="web")
            asked = await until(lambda: here.proxy.count(is_get_of("leaves")))
            here.delete("Pod", "goes")
            await until(lambda: ("delete", "goes", "Pending") in logger.log)
            here.pod("leaves", tier="db")
            await until(lambda: len(logger.log) == 4)

    assert asked == 1
    assert logger.log[2:] == [("delete", "goes", "Pending"), ("add", "leaves", "Pending")]


def is_get_of(name: str) -> Any:
    return lambda request: request.method == "GET" and request.path.endswith(f"/pods/{name}")


# --- what streams tell ------------------------------------------------------------------------------------------------


async def test_a_stream_tells_of_its_start_its_watches_and_its_end(sandbox: Sandbox, told: Heard) -> None:
    async with place(sandbox, Impatient.all_rules()) as here:
        stream = {"stream": f"pods in {here.namespace}"}
        async with running(Impatient(here).run):
            await until(lambda: told.of("bonny.watcher.watch.succeeded"))
            here.pod("a")
            await until(lambda: told.of("bonny.watcher.watch.finished"))

    assert told.names[:3] == [
        "bonny.watcher.initialized",
        "bonny.watcher.watch.started",
        "bonny.watcher.watch.succeeded",
    ]
    chunk = told.of("bonny.watcher.chunk.received")[0]
    assert chunk.measurements["bytes"] > 100
    assert all(event.metadata == stream for event in told.events[:3])
    assert chunk.metadata == stream
    down = told.of("bonny.watcher.genserver.down")[0]
    assert down.metadata == {**stream, "reason": "CancelledError"}


@pytest.mark.parametrize(
    ("effect", "end"),
    [
        pytest.param(Respond(503, b"no backend"), {"status": 503}, id="refused"),
        pytest.param(Drop(), {"error": None}, id="reset"),
        pytest.param(Cut(), {"error": None}, id="cut in the middle of a line"),
        pytest.param(Inject(line("ERROR", status(410, "Expired")) + b"\n"), {}, id="expired"),
    ],
)
async def test_a_watch_that_fails_is_told_and_so_is_the_trouble_until_its_end(
    sandbox: Sandbox, told: Heard, effect: Any, end: dict[str, Any]
) -> None:
    async with place(sandbox, PodLifecycleLogger.all_rules()) as here:
        logger = PodLifecycleLogger(here)
        # The first watch has a connection of its own; only on a used one would the transport send it once more.
        here.proxy.add(Fault(effect, on=is_watch))
        async with running(logger.run):
            if isinstance(effect, Cut):
                await until(lambda: told.of("bonny.watcher.watch.succeeded"))
                here.pod("a")
            await until(lambda: told.of("bonny.watcher.failing.finished"))

    (failed,) = told.of("bonny.watcher.watch.failed")
    assert failed.metadata.keys() == {"stream", *end}
    assert failed.metadata.get("status") == end.get("status")
    (started,) = told.of("bonny.watcher.failing.started")
    assert started.metadata["verb"] == "watch"
    assert started.metadata["kind"] in ("server", "unreachable", "expired")


async def test_a_watch_that_falls_silent_is_told_as_timed_out(sandbox: Sandbox, told: Heard) -> None:
    async with place(sandbox, Impatient.all_rules()) as here:
        here.proxy.add(Fault(Stall(), on=is_watch))
        async with running(Impatient(here).run):
            await until(lambda: told.of("bonny.watcher.watch.timedout"))
            await until(lambda: told.of("bonny.watcher.watch.finished"))

    (timed_out,) = told.of("bonny.watcher.watch.timedout")
    assert timed_out.metadata == {"stream": f"pods in {here.namespace}"}


async def test_a_list_that_is_refused_is_told_as_trouble(sandbox: Sandbox, told: Heard) -> None:
    async with place(sandbox, []) as here, running(PodLifecycleLogger(here).run):
        (started, *_) = await until(lambda: told.of("bonny.watcher.failing.started"))

    assert (started.metadata["kind"], started.metadata["verb"], started.metadata["status"]) == (
        "forbidden",
        "list",
        403,
    )
    assert not told.of("bonny.watcher.watch.started")


async def test_a_stream_that_ends_by_an_error_of_our_own_is_told_as_down(sandbox: Sandbox, told: Heard) -> None:
    class Breaks(PodLifecycleLogger):
        def advanced(self, source: object) -> None:
            raise RuntimeError("a subscriber of our own making")

        seen = restored = advanced

    async with place(sandbox, Breaks.all_rules()) as here:
        logger = Breaks(here)
        logger.streams[0].subscribe(logger)
        with pytest.raises(ExceptionGroup):
            await logger.run()

    assert told.events[-1].name == "bonny.watcher.genserver.down"
    assert told.events[-1].metadata["reason"] == "RuntimeError"


async def test_a_handler_that_fails_is_told_and_called_again(sandbox: Sandbox, told: Heard) -> None:
    class Fails(PodLifecycleLogger):
        tries = 0

        async def add(self, pod: Resource) -> None:
            self.tries += 1
            if self.tries == 1:
                raise ValueError("no")
            self.log_event("add", pod)

    async with place(sandbox, Fails.all_rules()) as here:
        here.pod("a")
        logger = Fails(here)
        async with running(logger.run):
            await until(lambda: logger.log == [("add", "a", "Pending")])

    (failed,) = told.of("bonny.watcher.handle.failed")
    assert (failed.metadata["action"], failed.metadata["object"]) == ("add", f"{here.namespace}/a")
    assert isinstance(failed.metadata["error"], ValueError)
