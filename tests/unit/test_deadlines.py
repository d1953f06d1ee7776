"""Deadlines: each is called at its time or not at all, and one timer of the event loop serves all of them."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.deadlines import Deadlines, deadlines
from tests.support.loops import LOOPS
from tests.support.virtual import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@given(st.lists(st.tuples(st.integers(1, 20), st.none() | st.integers(1, 20)), max_size=20))
def test_a_deadline_is_called_at_its_time_unless_it_was_removed_before(
    plan: list[tuple[int, int | None]],
) -> None:
    """Each has a time, and perhaps a time at which it is removed."""
    called: dict[int, float] = {}

    async def main(clock: Clock) -> None:
        began, pending = clock.now, Deadlines()
        loop = asyncio.get_running_loop()
        for index, (due, removed) in enumerate(plan):
            number = pending.add(due, lambda index=index: called.setdefault(index, round(clock.now - began)))
            if removed is not None:
                loop.call_later(removed - 0.5, pending.remove, number)
        await asyncio.sleep(30.0)

    with pytest.MonkeyPatch.context() as patch:
        clock = Clock(patch)
        clock.run(lambda: main(clock))

    assert called == {index: due for index, (due, removed) in enumerate(plan) if removed is None or removed > due}


def test_many_deadlines_have_one_timer(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        loop, timers = asyncio.get_running_loop(), []
        real = loop.call_at
        monkeypatch.setattr(loop, "call_at", lambda *given, **named: timers.append(given) or real(*given, **named))
        pending = Deadlines()
        for _ in range(1_000):
            pending.remove(pending.add(60.0, pytest.fail))
        assert len(timers) == 1
        pending.add(5.0, lambda: None)
        assert len(timers) == 2, "an earlier one takes its place"

    clock.run(main)


def test_a_call_that_removes_another_one_of_the_same_moment_prevents_it(clock: Clock) -> None:
    called: list[str] = []

    async def main() -> None:
        pending = Deadlines()
        numbers: list[int] = []
        pending.add(1.0, lambda: (called.append("first"), pending.remove(numbers[0])))
        numbers.append(pending.add(1.0, called.append, "second"))
        await asyncio.sleep(2.0)

    clock.run(main)

    assert called == ["first"]


def test_a_deadline_that_a_call_adds_is_kept(clock: Clock) -> None:
    called: list[str] = []

    async def main() -> None:
        pending = Deadlines()
        pending.add(1.0, lambda: pending.add(1.0, called.append, "later"))
        await asyncio.sleep(1.5)
        assert called == []
        await asyncio.sleep(1.0)

    clock.run(main)

    assert called == ["later"]


@pytest.mark.parametrize("loop", LOOPS)
def test_a_deadline_that_is_past_already_does_not_fail_the_next_one(loop: str) -> None:
    """Regression: uvloop's handle of such a moment has no `when`, and the next request or handler failed."""

    async def main() -> list[str]:
        pending, called = Deadlines(), asyncio.Queue[str]()
        for name, seconds in (("past", -1.0), ("later", 0.02), ("now", 0.0), ("soon", 0.0001)):
            pending.add(seconds, called.put_nowait, name)
        return [await called.get() for _ in range(4)]

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        called = runner.run(asyncio.wait_for(main(), 5.0))
    assert sorted(called) == ["later", "now", "past", "soon"]


def test_a_call_has_the_context_of_who_added_it(clock: Clock) -> None:
    """As with `loop.call_later`: a line in the log names the object whose handler is over its time."""
    subject: ContextVar[str] = ContextVar("subject", default="")
    seen: list[str] = []

    async def handler(name: str) -> None:
        subject.set(name)
        deadlines().add(1.0, lambda: seen.append(subject.get()))

    async def main() -> None:
        await asyncio.gather(handler("a"), handler("b"))
        await asyncio.sleep(2.0)

    clock.run(main)

    assert seen == ["a", "b"]


def test_each_event_loop_has_its_own(clock: Clock) -> None:
    async def mine() -> Deadlines:
        assert deadlines() is deadlines()
        return deadlines()

    assert clock.run(mine) is not clock.run(mine)
