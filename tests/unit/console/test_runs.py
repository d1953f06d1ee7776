"""The history of runs: what is remembered, of how many objects, and that traces go on."""

from __future__ import annotations

from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest

from bonny import Retry, Terminal
from bonny.console import runs
from bonny.console.runs import History
from bonny.core.records import Action
from bonny.resource import Key
from bonny.telemetry.tracing import Ended


def axn(name: str = "a", *, waiting: str | None = None) -> Any:
    return SimpleNamespace(action=Action.ADD, reasons=frozenset(), tries=2, key=Key("default", name), waiting=waiting)


async def ends(error: BaseException | None = None) -> None:
    if error is not None:
        raise error


class Traces:
    """Traces that note their calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def reconcile(self, axn: Any, run: Awaitable[None], *, controller: str) -> None:
        self.calls.append(f"reconcile {controller}")
        await run

    async def step(self, name: str, run: Awaitable[None]) -> None:
        self.calls.append(f"step {name}")
        await run

    def request(self, method: str, path: str, *, host: str) -> Ended | None:
        self.calls.append(f"request {method}")
        return lambda status, error: self.calls.append(f"ended {status}")


@pytest.mark.parametrize(
    ("error", "outcome", "text"),
    [
        (None, "succeeded", ""),
        (Retry("soon"), "retry", "soon"),
        (Terminal("no bulb"), "stopped", "no bulb"),
        (RuntimeError("a secret"), "failed", "RuntimeError: see the operator's log"),
    ],
)
async def test_the_outcome_of_a_run(error: Exception | None, outcome: str, text: str) -> None:
    history = History(None)
    if error is None:
        await history.reconcile(axn(), ends(), controller="C")
    else:
        with pytest.raises(type(error)):
            await history.reconcile(axn(), ends(error), controller="C")
    (run,) = history.runs["C", Key("default", "a")]
    assert (run.outcome, run.error, run.tries) == (outcome, text, 2)


async def test_a_run_that_waits_and_one_that_is_cancelled() -> None:
    history = History(None)
    await history.reconcile(axn(waiting="for noon"), ends(), controller="C")
    with pytest.raises(KeyboardInterrupt):
        await history.reconcile(axn(), ends(KeyboardInterrupt()), controller="C")
    assert [(run.outcome, run.error) for run in history.runs["C", Key("default", "a")]] == [
        ("waiting", "for noon"),
        ("cancelled", ""),
    ]


async def test_writes_of_a_run_and_of_nothing_else() -> None:
    history = History(None)

    async def writes() -> None:
        for method in ("GET", "PATCH"):
            if ended := history.request(method, "/api/v1/x", host="h"):
                ended(200, None)
        failed = history.request("DELETE", "/api/v1/x", host="h")
        assert failed is not None
        failed(None, TimeoutError())
        assert [key for key, _ in history.running("C")] == [Key("default", "a")]

    await history.reconcile(axn(), writes(), controller="C")
    assert history.request("PATCH", "/outside", host="h") is None
    (run,) = history.runs["C", Key("default", "a")]
    assert run.writes == ["PATCH /api/v1/x 200", "DELETE /api/v1/x TimeoutError"]
    assert history.running("C") == []


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "OBJECTS", 3)
    monkeypatch.setattr(runs, "WRITES", 2)
    history = History(None)

    async def many() -> None:
        for _ in range(5):
            if ended := history.request("PATCH", "/x", host="h"):
                ended(200, None)

    for name in ("a", "b", "a", "c", "d"):
        await history.reconcile(axn(name), many(), controller="C")
    assert [key.name for _, key in history.runs] == ["a", "c", "d"]
    assert [len(each.writes) for each in history.runs["C", Key("default", "a")]] == [2, 2]
    for _ in range(30):
        await history.reconcile(axn("d"), ends(), controller="C")
    assert len(history.runs["C", Key("default", "d")]) == runs.RUNS


async def test_traces_go_on() -> None:
    traces = Traces()
    history = History(traces)

    async def work() -> None:
        await history.step("Step", ends())
        ended = history.request("PATCH", "/x", host="h")
        assert ended is not None
        ended(201, None)

    await history.reconcile(axn(), work(), controller="C")
    assert traces.calls == ["reconcile C", "step Step", "request PATCH", "ended 201"]
