"""Telemetry events: who is told what, and what a listener cannot break."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import bonny
from bonny import compat, telemetry
from bonny.errors import OptionError
from bonny.telemetry import events
from tests.support.heard import heard

RUNTIME = Path(bonny.__file__).parent
MODULES = {"." + ".".join(path.relative_to(RUNTIME).with_suffix("").parts) for path in RUNTIME.rglob("*.py")}
# Bonny.Sys.Event.events/0 of Elixir's Bonny, with dots.
BONNY = [
    "task.stopped",
    "task.failed",
    "task.succeeded",
    "task.unregistered",
    "task.registered",
    "task.initialized",
    "scheduler.binding.failed",
    "scheduler.binding.succeeded",
    "scheduler.nodes.fetch.failed",
    "scheduler.nodes.fetch.succeeded",
    "scheduler.pods.fetch.failed",
    "scheduler.pods.fetch.succeeded",
    "reconciler.genserver.down",
    "reconciler.reconcile.failed",
    "reconciler.reconcile.succeeded",
    "reconciler.run.started",
    "reconciler.fetch.failed",
    "reconciler.fetch.succeeded",
    "reconciler.initialized",
    "watcher.genserver.down",
    "watcher.chunk.received",
    "watcher.watch.timedout",
    "watcher.watch.failed",
    "watcher.watch.finished",
    "watcher.watch.succeeded",
    "watcher.watch.started",
    "watcher.initialized",
]


@pytest.fixture(autouse=True)
def _nobody_else(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(events, "defaults", {})
    yield
    assert not events._attached, "a listener is left over"


def test_every_event_of_bonny_is_there_under_its_dotted_name() -> None:
    assert len(BONNY) == 27
    assert {f"bonny.{name}" for name in BONNY} <= set(telemetry.EVENTS)
    assert len(set(telemetry.EVENTS)) == len(telemetry.EVENTS)


def test_the_runtime_tells_of_no_event_that_is_not_listed() -> None:
    """A name that is misspelled where it is told would be heard by nobody."""
    told = {
        name
        for path in RUNTIME.rglob("*.py")
        if path.name != "events.py"
        for name in re.findall(
            r'"(bonny\.(?:task|scheduler|reconciler|watcher|client)\.[a-z.]+)"', path.read_text("utf-8")
        )
    }
    loggers = {name for name in told if "." + name.removeprefix("bonny.") in MODULES}
    unlisted = {name for name in told - loggers if not any(event.startswith(name) for event in telemetry.EVENTS)}
    assert unlisted == set()
    unheard = {name for name in telemetry.EVENTS if not name.endswith((".initialized", ".down"))} - told
    assert {name for name in unheard if ".scheduler." not in name} == set()


def test_every_event_has_a_row_in_the_reference() -> None:
    reference = (RUNTIME.parents[1] / "docs" / "reference" / "from-bonny.md").read_text("utf-8")
    listed = re.findall(r"`(bonny\.(?:task|scheduler|reconciler|watcher|client)\.[a-z.]+)`\]\(", reference)
    assert set(listed) == set(telemetry.EVENTS)


# --- listening --------------------------------------------------------------------------------------------------------


def test_a_listener_is_given_name_measurements_metadata_and_its_config() -> None:
    given: list[Any] = []
    telemetry.attach("mine", "mine.done", lambda *told: given.append(told), config="c")

    telemetry.execute("mine.done", {"duration": 0.5}, {"object": "default/w1"})
    telemetry.execute("mine.other", {"duration": 0.5}, {})

    assert given == [("mine.done", {"duration": 0.5}, {"object": "default/w1"}, "c")]
    assert telemetry.detach("mine")


def test_all_listeners_of_an_event_are_told_in_the_order_in_which_they_came() -> None:
    order: list[str] = []
    for id_ in ("first", "second"):
        telemetry.attach_many(id_, ["mine.a", "mine.b", "mine.a"], lambda *told: order.append(told[3]), id_)

    telemetry.execute("mine.a")
    telemetry.execute("mine.b")

    assert order == ["first", "second", "first", "second"]
    assert telemetry.detach("first")
    telemetry.execute("mine.a")
    assert order[4:] == ["second"]
    assert telemetry.detach("second")
    assert not telemetry.detach("second"), "there is none any more"


def test_a_listener_that_raises_is_detached_and_reported_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    calls: list[str] = []

    def breaks(*told: Any) -> None:
        calls.append("breaks")
        raise RuntimeError("out of order")

    telemetry.attach_many("bad", ["mine.a", "mine.b"], breaks)
    telemetry.attach("good", "mine.a", lambda *told: calls.append("good"))

    for name in ("mine.a", "mine.a", "mine.b"):
        telemetry.execute(name)

    assert calls == ["breaks", "good", "good"]
    (record,) = caplog.records
    assert record.getMessage() == "a listener failed and was detached"
    assert (vars(record)["listener"], vars(record)["event"]) == ("bad", "mine.a")
    assert "out of order" in caplog.text
    assert telemetry.detach("good")


def test_a_listener_may_detach_itself_while_it_is_told() -> None:
    calls: list[str] = []
    telemetry.attach("once", "mine.a", lambda *told: calls.append("once") or telemetry.detach("once"))

    telemetry.execute("mine.a")
    telemetry.execute("mine.a")

    assert calls == ["once"]


async def never_awaited(*told: object) -> None: ...


@pytest.mark.parametrize(
    ("id_", "name", "listener", "message"),
    [
        ("taken", "mine.a", print, "a listener 'taken' is already attached"),
        ("new", "bonny.task.faild", print, r"the event 'bonny\.task\.faild' does not exist"),
        ("new", "mine.a", never_awaited, "the listener 'new' is an `async def`"),
    ],
)
def test_what_cannot_be_attached_is_refused_in_one_sentence(id_: str, name: str, listener: Any, message: str) -> None:
    telemetry.attach("taken", "mine.a", print)
    with pytest.raises(OptionError, match=message):
        telemetry.attach(id_, name, listener)
    assert telemetry.detach("taken")


def test_without_a_listener_nobody_looks_at_what_is_told() -> None:
    class Untouchable:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError("somebody looked")

    telemetry.attach("mine", "mine.a", print)
    assert telemetry.detach("mine")

    telemetry.execute("mine.a", cast("Any", Untouchable()), cast("Any", Untouchable()))


def test_threads_may_attach_detach_and_tell_at_the_same_time() -> None:
    rounds, wrong = 1000, []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def work(number: int) -> None:
        mine: list[Any] = []
        for turn in range(rounds):
            telemetry.attach(f"t{number}", "mine.a", lambda *told: mine.append(told[2]["by"]))
            telemetry.execute("mine.a", {}, {"by": (number, turn)})
            telemetry.detach(f"t{number}")
        if [by for by in mine if by[0] == number] != [(number, turn) for turn in range(rounds)]:
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    sys.setswitchinterval(before)

    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


# --- telling ----------------------------------------------------------------------------------------------------------


def test_default_metadata_goes_with_every_event_and_the_events_own_beats_it() -> None:
    telemetry.set_metadata(operator="widgets-operator", region="here")
    with heard("bonny.task.succeeded") as listener:
        telemetry.execute("bonny.task.succeeded", {"duration": 1.0}, {"task": "t", "region": "there"})

    expected = {"operator": "widgets-operator", "region": "there", "task": "t"}
    assert listener.events[0].metadata == expected
    assert compat.metadata() == {"operator": "widgets-operator", "region": "here"}
    assert compat.metadata({"region": "there", "task": "t"}) == expected
