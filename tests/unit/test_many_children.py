"""Many children of one owner: requests at a time, turns of the event loop, and errors in one sentence; no server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from bonny.calling import text_of
from bonny.client import api
from bonny.client.api import Client
from bonny.client.config import Connection
from bonny.client.errors import NotLeading, Unreachable
from bonny.client.request import ApiRequest
from bonny.client.transport import Answer
from bonny.resource import listed
from bonny.steps.live import AT_ONCE, gather_all
from tests.support.virtual import Clock

MANY = 5_000


class Counted:
    """Requests that take a second each."""

    def __init__(self) -> None:
        self.now = self.most = self.begun = 0

    async def __call__(self, number: int) -> int:
        self.begun += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(1.0)
        finally:
            self.now -= 1
        return number * 2


@pytest.mark.parametrize("count", [0, 1, 2, AT_ONCE, AT_ONCE + 1, 1_000])
def test_one_reconcile_has_a_bounded_number_of_requests_under_way(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Regression: 5,000 children were 5,000 connections, 860 MB, and a lost lease."""
    requests = Counted()

    assert Clock(monkeypatch).run(lambda: gather_all(requests, range(count))) == [number * 2 for number in range(count)]
    assert (requests.begun, requests.most) == (count, min(count, AT_ONCE))


async def test_children_that_need_no_request_let_the_event_loop_go_on() -> None:
    turns = 0

    async def counts_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def compares(number: int) -> None:
        """Nothing to wait for."""

    counting = asyncio.create_task(counts_turns())
    await gather_all(compares, range(MANY))
    counting.cancel()

    assert turns >= MANY / AT_ONCE


async def test_all_are_tried_and_thousands_of_errors_are_one_sentence() -> None:
    """Regression: the error of each child was quoted, up to 16,384 characters in the log and in the status."""
    tried = []

    async def fails(number: int) -> None:
        tried.append(number)
        await asyncio.sleep(0)
        if number % 2:
            raise Unreachable(f"child {number} was refused")

    with pytest.raises(Unreachable) as caught:
        await gather_all(fails, range(MANY))

    assert tried == list(range(MANY))
    assert text_of(caught.value, notes="") == (
        "child 1 was refused; also: child 3 was refused; also: child 5 was refused; also: 2497 more of 5000"
    )


async def test_what_is_no_exception_ends_nothing_but_the_reconcile() -> None:
    async def cancels_itself(number: int) -> None:
        if number == 3:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await gather_all(cancels_itself, range(MANY))


def test_a_cancelled_reconcile_begins_no_further_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = Counted()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await gather_all(requests, range(MANY))
        assert (requests.begun, requests.now) == (3 * AT_ONCE, 0)
        await asyncio.sleep(10.0)

    Clock(monkeypatch).run(main)
    assert requests.begun == 3 * AT_ONCE


@pytest.mark.parametrize(
    ("count", "text"), [(0, ""), (2, "a0, a1"), (10, ", ".join(f"a{n}" for n in range(10))), (MANY, "and 4990 more")]
)
def test_a_message_names_a_few_of_many(count: int, text: str) -> None:
    said = listed([f"a{number}" for number in range(count)])

    assert said == text or (count == MANY and said.endswith(f"a9 {text}") and len(said) < 100)


# --- the requests of a process ----------------------------------------------------------------------------------------


class Here:
    """A cluster without a server."""

    source = "the test"

    async def connect(self) -> Connection:
        return Connection(server="https://server.invalid")


class Busy:
    """Where the transport is: answers after a second, and notes what it was asked."""

    distrusted_at = float("-inf")

    def __init__(self) -> None:
        self.counted = Counted()
        self.timeouts: list[float] = []

    async def request(self, *_: Any, timeout: float, **__: Any) -> Answer:
        self.timeouts.append(timeout)
        await self.counted(0)
        return Answer(200, {}, b"{}")

    async def close(self) -> None:
        """It has no connections."""


def ask(
    monkeypatch: pytest.MonkeyPatch, method: str, count: int, fence: Callable[[], float] | None = None
) -> tuple[Busy, list[Any]]:
    """Send `count` requests at once, each of which may take 5 s; two are under way at a time."""
    monkeypatch.setattr(api, "IN_FLIGHT", 2)
    clock, busy = Clock(monkeypatch), Busy()

    async def main() -> list[Any]:
        async with Client(Here(), user_agent="test/1", timeout=5.0, fence=fence) as client:
            client._transport = busy  # type: ignore[assignment]
            requests = (client.exchange(ApiRequest(method, "/")) for _ in range(count))
            return await asyncio.gather(*requests, return_exceptions=True)

    return busy, clock.run(main)


def test_the_time_of_a_request_does_not_run_while_it_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: of 5,000 requests most were given up before they were sent."""
    busy, answers = ask(monkeypatch, "GET", 40)

    assert [answer.status for answer in answers] == [200] * 40
    assert busy.counted.most == 2
    assert busy.timeouts == pytest.approx([5.0] * 40)


def test_a_write_that_waited_for_others_is_not_sent_after_the_time_of_the_fence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = 1000.0 + 2.5
    busy, answers = ask(monkeypatch, "PATCH", 10, lambda: max(ends - time.monotonic(), 0.0))

    assert busy.timeouts == pytest.approx([2.5, 2.5, 1.5, 1.5, 0.5, 0.5])
    assert [type(answer) for answer in answers[6:]] == [NotLeading] * 4
