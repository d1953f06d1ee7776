"""The console on a real API server: what it shows of a running operator, and whom it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from bonny.resource import RECONCILE_AT
from bonny_dev.sandbox import Sandbox
from tests.support.watched import GROUP, TOKEN, exchange, watched

KIND = f"clocks.{GROUP}"


class Console:
    """A client of the console, as a browser or another program would be."""

    def __init__(self, port: int) -> None:
        self.port = port

    def status(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
        return exchange(self.port, path, method=method, **headers)

    def get(self, path: str, **query: str) -> Any:
        status, body, _ = self.status(f"{path}?{urlencode(query)}", Authorization=f"Bearer {TOKEN}")
        assert status == 200, body
        return json.loads(body)

    def runs(self, name: str) -> list[dict[str, Any]]:
        found = self.get("/object", kind=KIND, namespace="default", name=name)
        runs: list[dict[str, Any]] = found["runs"]
        return runs


@pytest.fixture(scope="module")
def console(sandbox: Sandbox) -> Iterator[Console]:
    with watched(sandbox) as port:
        yield Console(port)


def test_it_shows_streams_queues_and_slots(console: Console) -> None:
    # A run is shown when it begins, and an error is counted when it has ended.
    Sandbox.eventually(lambda: console.get("/overview")["controllers"][0]["errors"] >= 1)
    shown = console.get("/overview")
    assert (shown["operator"], shown["version"], shown["pod"], shown["leading"]) == ("watched", "1.2.3", "test", True)
    streams = {each["name"]: each for each in shown["streams"]}
    assert streams.keys() == {f"clocks.{GROUP}", "secrets"}
    assert streams[f"clocks.{GROUP}"]["objects"] == 4
    assert all(each["synced"] and each["error"] is None for each in streams.values())
    (controller,) = shown["controllers"]
    assert (controller["name"], controller["slots"]) == ("ClockController", 10)
    assert controller["errors"] >= 1


def test_it_shows_the_last_runs_of_an_object_and_its_writes(console: Console) -> None:
    Sandbox.eventually(lambda: bool(console.runs("calm")))
    Sandbox.eventually(lambda: console.runs("calm")[0]["outcome"] == "succeeded")
    run = console.runs("calm")[-1]
    assert (run["action"], run["reasons"], run["tries"]) == ("add", ["added"], 0)
    assert [each for each in run["writes"] if each.startswith("PATCH /api/v1/namespaces/default/secrets/calm ")]
    assert 0 < run["seconds"] < 60


def test_it_shows_where_an_object_is_in_the_queue(console: Console) -> None:
    def found(name: str) -> Any:
        return console.get("/object", kind=KIND, controller="ClockController", namespace="default", name=name)

    Sandbox.eventually(lambda: [each["outcome"] for each in found("late")["runs"]][:1] == ["waiting"])
    late = found("late")
    assert late["runs"][0]["error"] == "it is not noon yet"
    assert 500 < late["queue"]["timer_seconds"] <= 600
    Sandbox.eventually(lambda: found("broken")["queue"]["state"] == "delayed")
    broken = found("broken")
    assert broken["queue"]["tries"] >= 1
    assert broken["queue"]["seconds"] > 0
    assert broken["runs"][0]["outcome"] == "failed"
    assert found("nobody") == {"queue": {**NOWHERE}, "runs": []}


NOWHERE = {"state": "", "tries": 0, "seconds": None, "timer_seconds": None}


def test_it_shows_the_last_outcome_of_all_objects_and_no_values(console: Console) -> None:
    def outcomes() -> dict[str, str]:
        return {name: outcome for _, _, name, outcome, *_ in console.get("/outcomes")["runs"]}

    wanted = {
        "default/calm": "succeeded",
        "default/late": "waiting",
        "default/broken": "failed",
        "default/hostile": "waiting",
    }
    Sandbox.eventually(lambda: outcomes() == wanted)
    everything = [console.get("/outcomes"), console.get("/overview")]
    everything += [console.get("/object", kind=KIND, namespace="default", name="broken")]
    assert "secret value" not in json.dumps(everything)
    assert "very secret" not in json.dumps(everything)


def test_only_changes_are_sent_again(console: Console, sandbox: Sandbox) -> None:
    Sandbox.eventually(lambda: len(console.get("/outcomes")["runs"]) == 4)
    first = console.get("/outcomes")
    assert first["whole"]
    later = console.get("/outcomes", since=first["version"])
    assert not later["whole"]
    assert {name for _, _, name, *_ in later["runs"]} <= {"default/broken"}  # it is tried again and again
    patch = {"metadata": {"annotations": {RECONCILE_AT: "now"}}}
    path = f"/apis/{GROUP}/v1/namespaces/default/clocks/calm"
    sandbox.request("PATCH", path, patch, content_type="application/merge-patch+json")

    def told() -> bool:
        runs = console.get("/outcomes", since=later["version"])["runs"]
        return ["ClockController", KIND, "default/calm", "succeeded"] in [each[:4] for each in runs]

    Sandbox.eventually(told)
    assert console.get("/outcomes", since="nonsense")["whole"]


def test_it_shows_when_a_retry_is_due(console: Console) -> None:
    def waits() -> dict[str, Any]:
        return {each[2]: each[-1] for each in console.get("/outcomes")["runs"]}

    Sandbox.eventually(lambda: (waits().get("default/late") or 0) > 500)
    Sandbox.eventually(lambda: (waits()["default/broken"] or 0) > 0)
    assert waits()["default/calm"] is None or waits()["default/calm"] > 3600  # the next resync


def test_it_shows_a_request_of_each_sort(console: Console) -> None:
    Sandbox.eventually(lambda: bool(console.runs("calm")))
    sorts = {
        (method, path.rpartition("/")[2], watch) for method, path, watch, _ in console.get("/overview")["requests"]
    }
    assert {("GET", "clocks", False), ("GET", "clocks", True), ("PATCH", "status", False)} <= sorts


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": TOKEN}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example.com"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "127.0.0.1.evil.example.com:80"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example.com"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "null"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "localhost"}, 200),
    ],
)
def test_it_refuses_strangers(console: Console, headers: dict[str, str], status: int) -> None:
    """A page of a browser sends an Origin; after DNS rebinding, it sends the name of its own host."""
    assert console.status("/overview", **headers)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_it_can_only_be_read(console: Console, method: str) -> None:
    assert console.status("/overview", method=method, Authorization=f"Bearer {TOKEN}")[0] == 405


def test_no_page_of_a_browser_may_read_its_answers(console: Console) -> None:
    _, _, headers = console.status("/overview", Authorization=f"Bearer {TOKEN}")
    assert [name for name in headers if name.startswith("access-control-")] == []
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("path", ["/", "/object", "/object?kind=nobodies", "/overview/", "/metrics"])
def test_other_paths_are_not_found(console: Console, path: str) -> None:
    assert console.status(path, Authorization=f"Bearer {TOKEN}")[0] == 404
