"""Plans: which lives a usual run has, and which a thorough one has besides."""

from __future__ import annotations

from bonny_dev.prove.findings import DIFF_LINES, Finding, Report
from bonny_dev.prove.html import page
from bonny_dev.prove.plans import SORTS, Fault, Plan, plans_for, usual
from bonny_dev.prove.points import API, SERVICE, Chapter, Point
from bonny_dev.prove.state import differences

POINTS = [
    Point(Chapter.CREATED, API, "write", "configmaps desk"),
    Point(Chapter.CREATED, API, "write", "lamps desk status"),
    Point(Chapter.CREATED, SERVICE, "PUT", "/lamps/1"),
    Point(Chapter.CHANGED, API, "write", "configmaps desk"),
    Point(Chapter.AGAIN, API, "write", "configmaps desk"),
]
CHAPTERS = [Chapter.CREATED, Chapter.CHANGED, Chapter.DELETED, Chapter.AGAIN]


def names(plans: list[Plan], fault: Fault) -> list[str]:
    return [str(plan.at or "") for plan in plans if plan.fault is fault]


def test_a_thorough_run_loses_events_at_each_write_to_the_api_server() -> None:
    plans = list(plans_for("desk", POINTS, CHAPTERS))

    assert names(plans, Fault.EVENTS_LOST) == [str(point) for point in POINTS if point.server == API]
    assert names(plans, Fault.OLDER) == ["created", "changed", "created-again"]


def test_a_usual_run_loses_events_at_the_first_write_of_a_few_chapters_and_has_all_other_lives() -> None:
    plans = list(plans_for("desk", POINTS, CHAPTERS))
    kept = list(usual(plans))

    assert names(kept, Fault.EVENTS_LOST) == ["created/write-configmaps-desk", "changed/write-configmaps-desk"]
    assert names(kept, Fault.OLDER) == ["changed", "created-again"]
    assert {plan.fault for plan in plans if plan not in kept} == {Fault.EVENTS_LOST, Fault.OLDER}


def test_a_usual_run_has_these_lives_of_each_sample() -> None:
    plans = [plan for name in ("desk", "shelf") for plan in plans_for(name, POINTS, CHAPTERS)]

    assert names(list(usual(plans)), Fault.OLDER) == ["changed", "created-again"] * 2


def test_each_fault_has_a_sort_of_bug_and_words_of_its_own() -> None:
    told = [Plan("desk", fault, at).told() for fault in Fault for at in (None, Chapter.CHANGED)]

    assert set(SORTS) == set(Fault)
    assert Plan("desk", Fault.OLDER, Chapter.AGAIN).told() == (
        "started again after the object was created again, and shown the state before that for a while"
    )
    assert all(told)


def test_a_report_shows_the_first_lines_of_a_long_difference() -> None:
    diff = [f"+ ConfigMap {number} should not be there" for number in range(DIFF_LINES + 3)]
    report = Report("lamps", 0, [Finding(Plan("desk", Fault.LOAD), "a wrong state remains", diff)])

    for text in ("\n".join(report.lines()), page(report)):
        assert diff[DIFF_LINES - 1] in text
        assert diff[DIFF_LINES] not in text
        assert "... and 3 more" in text


def test_objects_with_generated_names_are_in_the_order_of_their_numbers() -> None:
    made = {f"ConfigMap with a generated name, number {number}": {} for number in (1, 2, 10, 9)}

    assert [line.split()[-5] for line in differences(made, {})] == ["1", "2", "9", "10"]
