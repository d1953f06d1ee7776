"""Cron schedules of periodic tasks and reconcilers. Time is virtual, the wall clock included."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bonny import PeriodicTask, Reconciler, Resource, TaskRun
from bonny.client import Client
from bonny.cron import CronTicks
from bonny.errors import OptionError
from bonny.servers.periodic import PeriodicTasks
from tests.support.core import thing
from tests.support.virtual import Clock
from tests.support.widget import Widget

CLIENT = Client(cast("Any", None), user_agent="tests", group="example.com")
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


class Wall(Clock):
    """A clock whose wall time can be set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.start = NOON
        self._began = self.now
        monkeypatch.setattr(time, "time", self.seconds)

    def seconds(self) -> float:
        return self.wall.timestamp()

    @property
    def wall(self) -> datetime:
        return self.start + timedelta(seconds=self.now - self._began)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Wall:
    return Wall(monkeypatch)


def runs_of(
    clock: Wall,
    cron: str,
    *,
    hours: float,
    timezone: str = "UTC",
    takes: float = 0.0,
    at: dict[float, Callable[[], object]] | None = None,
) -> list[str]:
    """The wall times at which a task runs within so many hours; `at` some seconds something happens."""
    times: list[datetime] = []

    async def run(_: TaskRun) -> None:
        times.append(clock.wall)
        await asyncio.sleep(takes)

    async def main() -> None:
        task = PeriodicTask("t", run, cron=cron, timezone=timezone)
        running = asyncio.create_task(PeriodicTasks(CLIENT, [task]).run())
        for seconds, happens in (at or {}).items():
            asyncio.get_running_loop().call_later(seconds, happens)
        await asyncio.sleep(hours * 3600)
        running.cancel()
        await asyncio.wait({running})

    clock.run(main)
    return [f"{each.astimezone(ZoneInfo(timezone)):%d %H:%M:%S}" for each in times]


def test_a_task_runs_at_the_times_of_its_expression(clock: Wall) -> None:
    clock.start += timedelta(minutes=7, microseconds=300)
    assert runs_of(clock, "*/20 * * * *", hours=1) == ["02 12:20:00", "02 12:40:00", "02 13:00:00"]


def test_the_time_zone_counts(clock: Wall) -> None:
    assert runs_of(clock, "30 2 * * *", hours=48, timezone="Europe/Berlin") == ["03 02:30:00", "04 02:30:00"]


def test_ticks_during_a_run_are_skipped(clock: Wall) -> None:
    assert runs_of(clock, "*/5 * * * *", hours=0.6, takes=720) == ["02 12:05:00", "02 12:20:00", "02 12:35:00"]


def test_the_ticks_of_a_sleep_are_one(clock: Wall) -> None:
    """The monotonic clock and its timers stand still while a machine sleeps."""

    def wakes_up_later() -> None:
        clock.start += timedelta(hours=3)

    times = runs_of(clock, "*/5 * * * *", hours=0.2, at={403: wakes_up_later})
    assert times == ["02 12:05:00", "02 15:06:50", "02 15:10:00"]


def test_a_clock_that_is_set_back_does_not_stop_the_ticks(clock: Wall) -> None:
    def set_back() -> None:
        clock.start -= timedelta(hours=1)

    times = runs_of(clock, "*/5 * * * *", hours=0.3, at={400: set_back})
    assert times == ["02 12:05:00", "02 11:10:00", "02 11:15:00"]


def test_a_clock_that_is_corrected_repeats_no_tick(clock: Wall) -> None:
    def corrected() -> None:
        clock.start -= timedelta(seconds=2)

    times = runs_of(clock, "*/5 * * * *", hours=0.2, takes=1.0, at={300.5: corrected})
    assert times == ["02 12:05:00", "02 12:10:00"]


def test_a_time_that_summer_time_skips_comes_right_after(clock: Wall) -> None:
    clock.start = datetime(2026, 3, 29, 0, 0, tzinfo=BERLIN).astimezone(UTC)
    times = runs_of(clock, "30 2 * * *", hours=30, timezone="Europe/Berlin")
    assert times == ["29 03:00:00", "30 02:30:00"]


def test_a_time_that_comes_twice_in_autumn_is_one(clock: Wall) -> None:
    """Regression guard: within the second pass, the expression alone names a time in the first one."""
    clock.start = datetime(2026, 10, 25, 0, 0, tzinfo=BERLIN).astimezone(UTC)
    times = runs_of(clock, "30 2 * * *", hours=30, timezone="Europe/Berlin")
    assert times == ["25 02:30:00", "26 02:30:00"]


# The second pass of the hour that comes twice.
@example(after=datetime(2026, 10, 25, 1, 15, tzinfo=UTC).timestamp(), cron="30 2 * * *", timezone="Europe/Berlin")
@given(
    after=st.floats(1.6e9, 2.1e9),
    cron=st.sampled_from(["* * * * *", "30 2 * * *", "*/7 1-3 * * *", "0 0 29 2 *", "0 3 L * *", "15 2 * * SUN#1"]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]),
)
def test_the_next_tick_is_always_later(after: float, cron: str, timezone: str) -> None:
    ticks = CronTicks(cron, timezone, name="it")
    first = ticks.next(after)
    assert after < first
    assert ticks.next(first) > first


# --- reconcilers ------------------------------------------------------------------------------------------------------


class Nightly(Reconciler[Widget]):
    """Notes its runs."""

    cron = "0 */2 * * *"
    times: list[str]

    async def reconcilable_resources(self) -> AsyncIterator[Resource]:
        yield thing("a")

    async def reconcile(self, _: Resource) -> None:
        self.times.append(f"{datetime.fromtimestamp(time.time(), UTC):%H:%M}")


def test_a_reconciler_runs_only_when_its_expression_says_and_when_it_is_asked(clock: Wall) -> None:
    nightly = Nightly(CLIENT)
    nightly.times = []

    async def main() -> None:
        running = asyncio.create_task(nightly.run())
        await asyncio.sleep(60)
        nightly.schedule(60)
        await asyncio.sleep(5 * 3600)
        nightly.stop()
        await running

    clock.run(main)
    assert nightly.times == ["12:02", "14:00", "16:00"]


# --- refusals ---------------------------------------------------------------------------------------------------------


def reconciler(**settings: Any) -> None:
    type("It", (Reconciler,), {"operation": Widget, **settings})


def task(**settings: Any) -> None:
    PeriodicTask("It", print, **settings)


EACH = pytest.mark.parametrize("make", [reconciler, task])


@EACH
@pytest.mark.parametrize("cron", ["* * * *", "61 * * * *", "every day", "@daily", "0 0 31 2 *", "a b c d e"])
def test_a_malformed_expression_is_named_at_its_definition(make: Callable[..., None], cron: str) -> None:
    message = r"^the cron expression of (task )?It is '.*' \((Bad|Wrong) .*\): write '\*/5 \* \* \* \*'$"
    with pytest.raises(OptionError, match=message):
        make(cron=cron)


@EACH
@pytest.mark.parametrize("timezone", ["Europe/Nowhere", "", "../../etc/passwd", "/etc/localtime"])
def test_an_unknown_time_zone_is_named(make: Callable[..., None], timezone: str) -> None:
    with pytest.raises(OptionError, match=r"^the timezone of (task )?It is '.*': write for example 'Europe/Berlin'$"):
        make(cron="* * * * *", timezone=timezone)


@EACH
def test_without_the_package_the_extra_is_named(make: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", cast("Any", None))
    with pytest.raises(
        OptionError, match=r"^(task )?It has a cron expression, .* cronsim: run `invoke extras --add cron`, and"
    ):
        make(cron="* * * * *")


def test_an_expression_and_an_interval_are_refused() -> None:
    with pytest.raises(OptionError, match=r"^task It has cron, and interval or jitter: leave out either$"):
        task(cron="* * * * *", interval=3.0)
    with pytest.raises(OptionError, match=r"^task It has cron, and interval or jitter: leave out either$"):
        task(cron="* * * * *", jitter=0.1)
    with pytest.raises(OptionError, match=r"^It has cron and frequency: leave out either$"):
        reconciler(cron="* * * * *", frequency=3.0)
