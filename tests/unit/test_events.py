"""Events: what can be told, and who can tell it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.core.backoff import Backoff
from bonny.errors import OptionError
from bonny.events import Event, EventRecorder, EventType
from bonny.resource import Resource

# Repeated, so that some are longer than what is taken.
TEXTS = st.builds(str.__mul__, st.text(st.characters(exclude_categories=()), max_size=40), st.integers(1, 200))


def event(*, reason: str = "Created", action: str = "Reconcile", message: str = "done") -> Event:
    return Event(EventType.NORMAL, reason, action, message)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Of a cluster that is not there."""
    async with Client(Kubeconfig("/nowhere"), user_agent="tests/1") as made:
        yield made


@pytest.fixture
def told(client: Client) -> EventRecorder:
    return EventRecorder(client, controller="widgets-operator", instance="pod-1")


def about(name: str = "w1", **metadata: str) -> Resource:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "uid": "u-1", **metadata}}


@pytest.mark.parametrize("word", ["", "x" * 129, "é" * 65, "two\nlines", "\ud800"], ids=repr)
def test_a_reason_or_action_that_the_api_does_not_take_is_refused_in_one_sentence(word: str) -> None:
    with pytest.raises(OptionError, match=r"^the reason of an event is .*: use one word, 128 bytes at most"):
        event(reason=word)
    with pytest.raises(OptionError, match=r"^the action of an event is .*: use one word, 128 bytes at most"):
        event(action=word)


@pytest.mark.parametrize("word", ["x" * 128, "é" * 64, "FailedCreate"])
def test_reasons_and_actions_of_up_to_128_bytes_are_taken(word: str) -> None:
    assert (event(reason=word).reason, event(action=word).action) == (word, word)


@given(message=TEXTS)
def test_a_message_is_cut_at_1_kib_between_two_characters(message: str) -> None:
    taken = event(message=message).message
    sendable = message.encode(errors="replace").decode()

    assert sendable.startswith(taken)
    assert len(taken.encode()) <= 1024
    assert taken == sendable or len(taken.encode()) > 1024 - 4


@pytest.mark.parametrize(
    "controller",
    [
        *("", "-widgets", "widgets-", "wídgets", "widgets operator", "widgets\n", "x" * 64),
        *("Example.com/widgets", "a..b/widgets", "/widgets", "a/b/widgets", f"{'x' * 254}/widgets"),
    ],
)
async def test_a_controller_whose_events_the_api_server_would_refuse_is_refused(
    client: Client, controller: str
) -> None:
    with pytest.raises(OptionError, match=r"cannot report events: name a controller such as example\.com/widgets"):
        EventRecorder(client, controller=controller, instance="pod-1")


async def test_an_instance_needs_a_name(client: Client) -> None:
    with pytest.raises(OptionError, match="cannot report events"):
        EventRecorder(client, controller="widgets-operator", instance="")


async def test_recording_neither_waits_nor_sends_nor_fails_without_anybody_who_sends(told: EventRecorder) -> None:
    for number in range(10_000):
        told.record(about(f"w{number}", namespace="shop"), event(message="\ud800"))

    assert (told.correlator.recorded, told.correlator.unsent, told.correlator.dropped) == (10_000, 4096, 5904)


@pytest.mark.parametrize("resource", [{}, {"metadata": None}, {"kind": None, "metadata": {"uid": None}}], ids=repr)
async def test_recording_takes_any_resource(told: EventRecorder, resource: Resource) -> None:
    told.record(resource, Event(EventType.NORMAL, "Created", "Reconcile", "done", resource))

    assert told.correlator.unsent == 1


async def test_events_that_differ_only_in_the_version_of_their_objects_are_equal(told: EventRecorder) -> None:
    for version in ("1", "2", "3"):
        related = about("child", resourceVersion=version)
        told.record(about(resourceVersion=version), Event(EventType.WARNING, "Failed", "Reconcile", "no", related))

    assert (len(told.correlator._series), told.correlator.unsent) == (1, 3)


async def test_events_that_differ_in_anything_that_is_told_are_several(told: EventRecorder) -> None:
    several = [
        event(),
        event(reason="Updated"),
        event(action="Delete"),
        event(message="done again"),
        Event(EventType.WARNING, "Created", "Reconcile", "done"),
        Event(EventType.NORMAL, "Created", "Reconcile", "done", about("child")),
        Event(EventType.NORMAL, "Created", "Reconcile", "done", about("child", uid="u-2")),
    ]
    for one in several:
        told.record(about(), one)
    told.record(about(uid="u-2"), event())

    assert len(told.correlator._series) == len(several) + 1


async def test_a_flood_of_normal_events_hides_no_warning(told: EventRecorder) -> None:
    for number in range(100):
        told.record(about(), event(message=f"number {number}"))
    limited = told.correlator.limited
    told.record(about(), Event(EventType.WARNING, "Failed", "Reconcile", "no"))

    assert (limited, told.correlator.limited) == (75, 75)


async def test_what_is_dropped_is_told_once_a_minute(
    told: EventRecorder, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts() -> list[int]:
        found = [known.__dict__ for known in caplog.records if known.name == "bonny.events"]
        assert all(line["msg"] == "events dropped" and "/nowhere" in line["error"] for line in found)
        return [line["count"] for line in found]

    monkeypatch.setattr("bonny.events.WRITE_BACKOFF", Backoff(base=0.001, cap=0.001))
    for number in range(3):
        told.record(about(), event(message=f"number {number}"))
    task = asyncio.create_task(told.run())
    try:
        await until(lambda: told.correlator.dropped == 3)
        told.record(about(), event(message="another"))
        await until(lambda: told.correlator.dropped == 4)
        assert counts() == [1]

        monkeypatch.setattr("bonny.events.REPORT_SECONDS", 0.0)
        told.record(about(), event(message="a last one"))
        await until(lambda: counts() == [1, 3, 1])
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_cancellation_that_comes_with_an_event_is_not_lost(told: EventRecorder) -> None:
    task = asyncio.create_task(told.run())
    await asyncio.sleep(0)

    told.record(about(), event())
    task.cancel()

    await asyncio.wait({task}, timeout=10.0)
    assert task.cancelled()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30.0):
        while not holds():  # noqa: ASYNC110  what is waited for tells nobody
            await asyncio.sleep(0.001)


async def test_what_cannot_be_sent_before_the_end_is_told_in_the_log(
    told: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    told.record(about(), event())
    told.record(about(), event())
    with caplog.at_level("WARNING"):
        await told.drain(seconds=0.0)

    (line,) = [known for known in caplog.records if known.name == "bonny.events"]
    assert (line.message, line.__dict__["count"]) == ("events dropped", 2)
