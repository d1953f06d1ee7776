"""The soak's checks: what is right passes, and each thing that can be wrong is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.testing.faults import ProxiedRequest
from tests.soak import checks
from tests.soak.log import OperatorLog
from tests.soak.process import Census
from tests.soak.traffic import Traffic
from tests.soak.world import Wanted, is_gone

WANTED = {"w1": Wanted("u-1", 3)}


def widget(**changes: Any) -> Resource:
    conditions = [
        {"type": "Ready", "status": "True", "message": "size 3", "observedGeneration": 2},
        {"type": "Reconciled", "status": "True"},
    ]
    made = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w1", "uid": "u-1", "generation": 2},
        "spec": {"size": 3},
        "status": {"observedGeneration": 2, "conditions": conditions},
    }
    return {**made, **changes}


def child(name: str = "w1", *, owner: str = "u-1", size: str = "3", manager: str = "soak") -> Resource:
    labels = {"app.kubernetes.io/managed-by": manager}
    return {"metadata": {"name": name, "labels": labels, "ownerReferences": [{"uid": owner}]}, "data": {"size": size}}


def census(**changes: Any) -> Census:
    made: dict[str, Any] = {"resident": 70.0, "blocks": 1_000, "objects": 9, "files": 9, "threads": 1, "tasks": 4}
    made |= changes
    for name in ("objects", "files", "tasks"):
        made[name] = Counter(some=made[name])
    return Census(**made)


def test_an_object_whose_status_tells_of_its_spec_passes() -> None:
    assert checks.statuses(WANTED, [widget()]).passed


@pytest.mark.parametrize(
    ("widgets", "problem"),
    [
        ([], "does not exist"),
        ([widget(), widget(metadata={"name": "w2", "uid": "u-2", "generation": 1})], "should not"),
        ([widget(spec={"size": 4})], "the world is wrong"),
        ([widget(status={})], "observedGeneration"),
        ([widget(metadata={"name": "w1", "uid": "u-1", "generation": 3})], "observedGeneration"),
        ([widget(status={"observedGeneration": 2, "conditions": []})], "Ready"),
        ([widget(status={"observedGeneration": 2, "conditions": widget()["status"]["conditions"][:1]})], "Reconciled"),
    ],
)
def test_a_status_that_does_not_is_told(widgets: list[Resource], problem: str) -> None:
    assert problem in checks.statuses(WANTED, widgets).problems[0]


def test_a_child_that_is_right_passes_and_strangers_do_not_count() -> None:
    assert checks.children(WANTED, [child(), {"metadata": {"name": "kube-root-ca.crt"}}]).passed


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([], "does not exist"),
        ([child(), child("w2", owner="u-2")], "is left of"),
        ([child(owner="u-0")], "belongs to"),
        ([child(size="4")], "holds"),
        ([child(manager="")], "lacks its label"),
    ],
)
def test_a_child_that_is_wrong_is_told(found: list[Resource], problem: str) -> None:
    assert problem in checks.children(WANTED, found).problems[0]


def test_delete_runs_once_for_what_was_seen_and_at_most_once_for_what_was_not() -> None:
    gone = ["seen", "unseen", "unseen-and-deleted"]
    assert checks.deletions(gone, {"seen"}, {"seen": 1, "unseen-and-deleted": 1}).passed


@pytest.mark.parametrize(
    ("deleted", "problem"),
    [({}, "did not run"), ({"seen": 2}, "ran 2 times"), ({"seen": 1, "alive": 1}, "alive exists")],
)
def test_a_delete_too_few_or_too_many_is_told(deleted: dict[str, int], problem: str) -> None:
    assert problem in checks.deletions(["seen"], {"seen", "alive"}, deleted).problems[0]


def test_a_deletion_that_a_dead_operator_could_not_notice_is_excused_but_not_a_second_delete() -> None:
    assert checks.deletions(["seen"], {"seen"}, {}, excused={"seen"}).passed
    assert not checks.deletions(["seen"], {"seen"}, {"seen": 2}, excused={"seen"}).passed


@pytest.mark.parametrize("times", [[900.0], [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]])
def test_a_child_made_long_after_its_owners_end_or_again_and_again_is_told(times: list[float]) -> None:
    assert checks.late_children({"u-1": [3.0, 9.0]}).passed
    (problem,) = checks.late_children({"u-1": times, "u-2": [4.0]}).problems
    assert "u-1" in problem


@pytest.mark.parametrize(("through_proxy", "at_server"), [(1, 0), (0, 1)])
def test_a_write_at_rest_is_told_wherever_it_shows(through_proxy: int, at_server: int) -> None:
    assert checks.rest(seconds=30, through_proxy=0, at_server=0, handled=5).passed
    assert not checks.rest(seconds=30, through_proxy=through_proxy, at_server=at_server, handled=5).passed


def test_memory_may_grow_by_a_tenth_and_what_is_held_by_a_twentieth() -> None:
    assert checks.memory(census(), census(resident=76.0, blocks=1_040)).passed
    assert not checks.memory(census(), census(resident=78.0)).passed
    assert not checks.memory(census(), census(blocks=1_060)).passed


@pytest.mark.parametrize("left", [{"files": 20}, {"threads": 3}, {"tasks": 7}, {"objects": 90}])
def test_what_is_left_over_is_told(left: dict[str, int]) -> None:
    assert checks.resources(census(), census()).passed
    assert not checks.resources(census(), census(**left)).passed


def traffic(*times: float, path: str | None = None) -> Traffic:
    taken = Traffic()
    requests = [ProxiedRequest("GET", path or f"/{number}", {}, time) for number, time in enumerate(times)]
    taken.take(requests[: len(times) // 2])
    taken.take(requests)
    return taken


def test_the_busiest_second_and_the_most_wanted_thing_are_found() -> None:
    taken = traffic(1.0, 2.1, 2.2, 2.9, 3.0, path="/api")
    assert (taken.total, taken.peak, taken.hottest) == (5, 3, (5, "GET /api"))


def test_a_busy_loop_is_told_by_its_path_and_a_flood_by_its_second() -> None:
    steps = [number / 1_000 for number in range(9_000)]
    assert "GET /api" in checks.requests(traffic(*steps[:900], path="/api"), objects=1_000).problems[0]
    assert checks.requests(traffic(*steps[:900]), objects=1_000).passed
    assert not checks.requests(traffic(*steps), objects=10).passed


def test_events_count_as_requests_and_not_as_one_thing() -> None:
    """Regression: all are made at one path, so that the first storm of failures was a busy loop."""
    taken = traffic(*(number / 10 for number in range(90)), path="/apis/events.k8s.io/v1/namespaces/default/events")
    assert (taken.total, taken.peak, taken.hottest) == (90, 10, (0, "none"))


def test_a_red_probe_and_a_bad_end_are_told() -> None:
    fine: dict[str, Any] = {"red": 0, "probes": 9, "ready": "", "stop_code": 0, "stop_seconds": 0.1}
    assert checks.alive(**fine).passed
    for wrong in ({"red": 1}, {"ready": "syncing"}, {"stop_code": 1}):
        assert not checks.alive(**{**fine, **wrong}).passed


def test_errors_tracebacks_and_stray_lines_in_the_log_are_complaints(tmp_path: Path) -> None:
    file = tmp_path / "operator.log"
    log = OperatorLog(file)
    assert log.read().complaints == []
    file.write_text(
        '{"level":"warning","message":"reconcile failed"}\n{"level":"info","message":"seen","uid":"u"}\n{"lev'
    )
    assert checks.log_lines(log.read().messages, log.complaints).passed
    assert log.seen == {"u"}
    with file.open("a") as stream:
        stream.write('el":"error","message":"boom"}\n{"level":"warning","message":"m","exception":"E"}\nstray\n')
    assert len(checks.log_lines(log.read().messages, log.complaints).problems) == 3


def test_only_the_api_server_itself_can_say_that_an_object_is_gone() -> None:
    from bonny_dev.sandbox.admin import AdminAnswer  # noqa: PLC0415  only here

    assert is_gone(AdminAnswer(404, {"kind": "Status", "reason": "NotFound"}))
    assert not is_gone(AdminAnswer(404, "404 page not found"))
    assert not is_gone(AdminAnswer(503, {"kind": "Status", "reason": "ServiceUnavailable"}))
