"""Points, plans and reports: names and sentences, with plain values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bonny_dev.prove import run
from bonny_dev.prove.findings import Finding, Report
from bonny_dev.prove.html import page
from bonny_dev.prove.plans import Fault, Plan, plans_for
from bonny_dev.prove.points import API, Chapter, Point, Sort, at, is_step, points_of, sort_of
from bonny_dev.testing.faults import ProxiedRequest

MAPS = "/api/v1/namespaces/n/configmaps"


def request(method: str, path: str, body: object = None) -> ProxiedRequest:
    return ProxiedRequest(method, path, {}, 0.0, None, json.dumps(body).encode())


def sorted_as(method: str, path: str, body: object = None) -> Sort:
    return sort_of(request(method, path, body), Chapter.CREATED, API)


@pytest.mark.parametrize(
    ("sort", "words"),
    [
        (sorted_as("PATCH", f"{MAPS}/desk"), ("write", "configmaps desk")),
        (sorted_as("PATCH", "/apis/example.com/v1/namespaces/n/widgets/w/status"), ("write", "widgets w status")),
        (sorted_as("POST", MAPS, {"metadata": {"name": "desk"}}), ("create", "configmaps desk")),
        (sorted_as("POST", MAPS, {"metadata": {"generateName": "desk-"}}), ("create", "configmaps desk-...")),
        (sorted_as("POST", MAPS, "no object"), ("create", "configmaps")),
        (sorted_as("DELETE", "/api/v1/namespaces/n/pods/p"), ("delete", "pods p")),
        (sorted_as("GET", MAPS), ("list", "configmaps")),
        (sorted_as("GET", "/version"), ("read", "/version")),
    ],
    ids=lambda value: " ".join(value) if len(value) == 2 else "",
)
def test_a_request_is_named_by_verb_kind_and_object(sort: Sort, words: tuple[str, str]) -> None:
    assert sort[2:] == words


@pytest.mark.parametrize(("resource", "counts"), [("configmaps", True), ("events", False), ("leases", False)])
def test_events_and_leases_are_not_steps_of_a_life(resource: str, counts: bool) -> None:
    assert is_step(request("PATCH", f"/api/v1/namespaces/n/{resource}/x")) is counts
    assert not is_step(request("GET", f"/api/v1/namespaces/n/{resource}/x"))


def test_the_fault_is_at_the_nth_request_of_its_sort_and_at_no_other() -> None:
    desk, lamp = request("PATCH", f"{MAPS}/desk"), request("PATCH", f"{MAPS}/lamp")
    third = points_of([sorted_as(each.method, each.path) for each in (desk, lamp, desk, desk)])[3]
    hit = at(third, lambda each: sorted_as(each.method, each.path))

    assert [hit(each) for each in (desk, lamp, desk, lamp, desk, desk)] == [False, False, False, False, True, False]
    assert str(third) == "created/write-configmaps-desk-3"
    assert third.told() == "the third write of configmaps desk (chapter created)"


def test_plans_have_names_of_their_own_and_no_create_is_answered_with_a_conflict() -> None:
    points = [
        Point(Chapter.CREATED, API, "create", "configmaps desk"),
        Point(Chapter.DELETED, API, "write", "widgets w"),
        Point(Chapter.CREATED, API, "read", "secrets s"),
    ]
    plans = list(plans_for("desk", points, [Chapter.CREATED, Chapter.DELETED]))

    assert len({plan.name for plan in plans}) == len(plans)
    assert {plan.at.what for plan in plans if plan.fault is Fault.CONFLICT and isinstance(plan.at, Point)} == {
        "widgets w"
    }
    assert not [plan for plan in plans if plan.fault is Fault.KILL_AFTER and plan.at == points[2]]


def test_a_report_counts_findings_by_their_consequence_and_quotes_the_command_for_a_shell() -> None:
    point = Point(Chapter.CREATED, API, "write", "configmaps desk")
    plans = [Plan("desk", fault, point) for fault in (Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.LOST)]
    same = [Finding(plan, "a wrong state remains", ["- ConfigMap desk is missing"]) for plan in plans[:2]]
    report = Report("widgets-operator", 7, [*same, Finding(plans[2], "it does not come to rest")], seconds=3.0)

    assert report.summary() == "2 findings in 3 of 3 lives in 3 s"
    assert report.command(same[0]) == "invoke prove --only desk/kill-before/created/write-configmaps-desk --seed 7"
    assert "   the same after desk/kill-after/created/write-configmaps-desk" in report.lines()


def test_both_forms_of_a_report_tell_which_lives_show_nothing_and_quote_as_text() -> None:
    late = Plan("desk", Fault.LATE)
    finding = Finding(late, "a wrong state remains", ["- ConfigMap <b> is missing"], log="<script>")
    report = Report("widgets-operator", 0, [finding], [], [late], left_out=2, notes=["a & b"])
    notes = [
        "a & b",
        "lives that did not reach their request, so nothing failed in them: 1",
        "lives left out: 2; there was no time",
    ]

    html, terminal = page(report), "\n".join(report.lines())
    assert all(f"note: {note}" in terminal and note.replace("&", "&amp;") in html for note in notes)
    assert "<b>" not in html
    assert "<script>" not in html


def test_a_check_that_runs_no_life_with_a_fault_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: with too few minutes it passed without having tried anything."""
    plan = Plan("desk", Fault.LATE)
    report = Report("widgets-operator", 0, left_out=40)
    monkeypatch.setattr(run, "prove", lambda *_, **__: report)

    with pytest.raises(AssertionError, match="no life with a fault was run: give more minutes"):
        run.check(Path())
    report.passed.append(plan)
    run.check(Path())
