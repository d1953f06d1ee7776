"""The history of runs: what is remembered, of how many objects, and that traces go on."""

from __future__ import annotations

import asyncio
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

KIND = "widgets.example.com"


def axn(name: str = "a", *, waiting: str | None = None) -> Any:
    told = {"action": Action.ADD, "reasons": frozenset(), "tries": 2, "waiting": waiting}
    return SimpleNamespace(**told, key=Key("default", name), kind=SimpleNamespace(resource=KIND))


def hear(history: History, method: str, path: str, status: str = "200", **query: str) -> None:
    history.hear(
        "bonny.client.request.answered", {}, {"method": method, "path": path, "status": status, "query": query}, None
    )


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
    (run,) = history.runs["C", KIND, Key("default", "a")]
    assert (run.outcome, run.error, run.tries) == (outcome, text, 2)


async def test_a_run_that_waits_and_one_that_is_cancelled() -> None:
    history = History(None)
    await history.reconcile(axn(waiting="for noon"), ends(), controller="C")
    with pytest.raises(KeyboardInterrupt):
        await history.reconcile(axn(), ends(KeyboardInterrupt()), controller="C")
    assert [(run.outcome, run.error) for run in history.runs["C", KIND, Key("default", "a")]] == [
        ("waiting", "for noon"),
        ("cancelled", ""),
    ]


async def test_writes_of_a_run_and_of_nothing_else() -> None:
    history = History(None)

    async def writes() -> None:
        hear(history, "GET", "/api/v1/x")
        hear(history, "PATCH", "/api/v1/x")
        hear(history, "DELETE", "/api/v1/x", "<error>")
        (run,) = history.runs["C", KIND, Key("default", "a")]
        assert run.outcome == "running"

    await history.reconcile(axn(), writes(), controller="C")
    hear(history, "PATCH", "/outside")
    (run,) = history.runs["C", KIND, Key("default", "a")]
    assert run.writes == ["PATCH /api/v1/x 200", "DELETE /api/v1/x <error>"]


async def test_one_request_of_each_sort_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(None)
    for name in ("a", "b"):
        hear(history, "GET", f"/api/v1/namespaces/default/secrets/{name}")
        hear(history, "PATCH", f"/apis/example.com/v1/namespaces/default/widgets/{name}/status")
        hear(history, "GET", f"/apis/example.com/v1/gadgets/{name}")
        hear(history, "GET", f"/api/v1/namespaces/{name}")
    hear(history, "GET", "/api/v1/namespaces/default/secrets")
    hear(history, "GET", "/api/v1/namespaces/default/secrets", watch="true")
    hear(history, "GET", "/version")
    assert [(method, path, watch) for method, path, watch, _ in history.requests.values()] == [
        ("GET", "/api/v1/namespaces/default/secrets/a", False),
        ("PATCH", "/apis/example.com/v1/namespaces/default/widgets/a/status", False),
        ("GET", "/apis/example.com/v1/gadgets/a", False),
        ("GET", "/api/v1/namespaces/a", False),
        ("GET", "/api/v1/namespaces/default/secrets", False),
        ("GET", "/api/v1/namespaces/default/secrets", True),
        ("GET", "/version", False),
    ]
    monkeypatch.setattr(runs, "SORTS", 7)
    hear(history, "POST", "/api/v1/namespaces/default/events")
    assert len(history.requests) == 7


async def test_requests_of_other_threads_are_not_the_operators() -> None:
    """Those of the page beside `invoke run-local`, which has its own permissions."""
    history = History(None)
    await asyncio.to_thread(hear, history, "GET", "/version")
    assert history.requests == {}


async def test_each_begin_and_end_of_a_run_is_a_change() -> None:
    history = History(None)
    before = history.version
    await history.reconcile(axn("a"), ends(), controller="C")
    await history.reconcile(axn("b"), ends(), controller="C")
    assert history.version == before + 4
    assert [(key.name, each[-1].version - before) for (_, _, key), each in history.runs.items()] == [("a", 2), ("b", 4)]


async def test_objects_of_two_kinds_with_one_name_have_runs_of_their_own() -> None:
    """Regression: a controller of two kinds showed the runs of both under each."""
    history, other = History(None), axn()
    other.kind.resource = "gadgets.example.com"
    await history.reconcile(axn(), ends(), controller="C")
    await history.reconcile(other, ends(), controller="C")
    assert [len(each) for each in history.runs.values()] == [1, 1]


async def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "OBJECTS", 3)
    monkeypatch.setattr(runs, "WRITES", 2)
    history = History(None)

    async def many() -> None:
        for _ in range(5):
            hear(history, "PATCH", "/x")

    for name in ("a", "b", "a", "c", "d"):
        await history.reconcile(axn(name), many(), controller="C")
    assert [key.name for _, _, key in history.runs] == ["a", "c", "d"]
    assert [len(each.writes) for each in history.runs["C", KIND, Key("default", "a")]] == [2, 2]
    for _ in range(30):
        await history.reconcile(axn("d"), ends(), controller="C")
    assert len(history.runs["C", KIND, Key("default", "d")]) == runs.RUNS


async def test_traces_continue() -> None:
    traces = Traces()
    history = History(traces)

    async def work() -> None:
        await history.step("Step", ends())
        ended = history.request("PATCH", "/x", host="h")
        assert ended is not None
        ended(201, None)

    await history.reconcile(axn(), work(), controller="C")
    assert traces.calls == ["reconcile C", "step Step", "request PATCH", "ended 201"]
