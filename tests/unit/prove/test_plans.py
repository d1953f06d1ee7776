"""Plans: which lives a usual run has, and which a thorough one has besides."""

from __future__ import annotations

import pytest

from bonny.errors import UsageError
from bonny_dev.prove.findings import DIFF_LINES, Finding, Report
from bonny_dev.prove.html import page
from bonny_dev.prove.plans import SORTS, Fault, Plan, meaning, plans_for, refuse_unknown, usual
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
    assert {plan.fault for plan in plans if plan not in kept} == {Fault.EVENTS_LOST, Fault.OLDER, Fault.WRITTEN}


def test_another_writer_changes_objects_that_are_there_and_in_a_usual_run_once_in_a_few_chapters() -> None:
    more = [
        POINTS[0],
        Point(Chapter.CREATED, API, "create", "configmaps desk"),
        *POINTS[1:3],
        Point(Chapter.CREATED, API, "write", "lamps desk status", 2),
        *POINTS[3:],
        Point(Chapter.DELETED, API, "delete", "configmaps desk"),
    ]
    plans = list(plans_for("desk", more, CHAPTERS))

    assert names(plans, Fault.WRITTEN) == [
        "created/write-lamps-desk-status-2",
        "changed/write-configmaps-desk",
        "created-again/write-configmaps-desk",
        "deleted/delete-configmaps-desk",
    ]
    assert names(list(usual(plans)), Fault.WRITTEN) == [
        "created/write-lamps-desk-status-2",
        "changed/write-configmaps-desk",
        "deleted/delete-configmaps-desk",
    ]


def test_objects_made_from_the_schema_have_numbers() -> None:
    plans = [plan for plan in usual(plans_for("desk", [], [], objects=[1, 3])) if plan.fault is Fault.FUZZ]

    assert [(plan.name, plan.told()) for plan in plans] == [
        ("desk/fuzz/1", "with object 1 made from the schema"),
        ("desk/fuzz/3", "with object 3 made from the schema"),
    ]


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


def test_an_external_service_is_slow_finds_a_record_and_answers_late_reads_from_an_old_state() -> None:
    calls = [("GET", 1), ("POST", 1), ("GET", 2), ("PATCH", 1), ("DELETE", 1)]
    points = [Point(Chapter.CREATED, SERVICE, verb, "/lamps/1", nth) for verb, nth in calls]

    plans = list(plans_for("desk", [*points, Point(Chapter.CHANGED, SERVICE, "GET", "/lamps/1")], CHAPTERS))

    assert names(plans, Fault.SLOW) == [f"created/{verb}--lamps-1" for verb in ("POST", "PATCH", "DELETE")]
    assert names(plans, Fault.EXISTS) == ["created/POST--lamps-1"]
    assert names(plans, Fault.OLD) == ["created/GET--lamps-1-2"]  # not before a change in the same chapter


def test_the_page_says_what_each_fault_is_and_where_lives_went_wrong() -> None:
    plans = [Plan("desk", fault) for fault in Fault]
    report = Report("lamps", 3, [Finding(plan, "a wrong state remains") for plan in plans[:3]], plans[1:])

    text = page(report)

    assert all(meaning(fault) in text for fault in Fault)
    assert "{}" not in text
    assert text.count('class="count wrong">1</td>') == 3
    assert "2 more lives with the same end" in text
    assert "seed 3" in text


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("lamp/kill-*", "--only lamp/kill-*: there is no sample lamp; use desk, shelf, or * for any text"),
        ("desk/crash/created/*", "--only desk/crash/created/*: there is no fault crash; use 409, 429"),
    ],
)
def test_a_name_with_no_such_sample_or_fault_is_refused(word: str, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_unknown([word], ["shelf", "desk"])

    assert str(raised.value).startswith(sentence)


def test_names_that_may_exist_are_looked_for_later() -> None:
    refuse_unknown(["desk", "desk/kill-*/created/*", "*kill*", "d*/x", "desk/409/*", "earlier/upgrade"], ["desk"])
