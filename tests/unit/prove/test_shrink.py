"""Shrinking: which smaller samples are tried, in which order, and for how long."""

from __future__ import annotations

from typing import Any

from bonny_dev.prove.findings import Finding
from bonny_dev.prove.plans import Fault, Plan
from bonny_dev.prove.shrink import is_same, smaller, smallest
from bonny_dev.prove.variants import Sample

NEVER = float("inf")


def lamp(name: str = "desk", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "broken.example.com/v1", "kind": "Lamp", "metadata": {"name": name}, "spec": spec}


def sample(*subjects: dict[str, Any], surroundings: tuple[dict[str, Any], ...] = ()) -> Sample:
    return Sample("desk", surroundings, list(subjects), (), ())


def specs(found: Sample) -> list[Any]:
    return [each["spec"] for each in found.subjects]


def test_whole_objects_are_left_out_first_then_a_spec_then_fields_then_items() -> None:
    one = sample(lamp(a=1, b=[{"c": 2}]), surroundings=(lamp("around"),))

    candidates = list(smaller(one))

    assert candidates[0].surroundings == []
    assert [specs(each) for each in candidates[1:]] == [
        [{}],
        [{"b": [{"c": 2}]}],
        [{"a": 1}],
        [{"a": 1, "b": []}],
        [{"a": 1, "b": [{}]}],
    ]
    assert one.subjects == [lamp(a=1, b=[{"c": 2}])]


def test_one_of_several_subjects_is_left_out_but_never_the_last() -> None:
    assert [each.subjects for each in smaller(sample(lamp("a"), lamp("b")))] == [[lamp("b")], [lamp("a")]]
    assert list(smaller(sample(lamp()))) == []


def test_what_does_not_matter_is_gone_at_the_end() -> None:
    def shows(candidate: Sample) -> bool:
        return all("colour" in spec and 3 in spec.get("sizes", ()) for spec in specs(candidate))

    found = smallest(sample(lamp(colour="red", note="x", sizes=[1, 2, 3])), shows, until=NEVER)

    assert specs(found) == [{"colour": "red", "sizes": [3]}]


def test_nothing_is_tried_twice_and_nothing_after_the_time() -> None:
    tried: list[Sample] = []

    def shows(candidate: Sample) -> bool:
        assert candidate not in tried
        tried.append(candidate)
        return False

    whole = sample(lamp(colour="red", sizes=[1, 1]))

    assert smallest(whole, shows, until=0.0) is whole
    assert tried == []
    assert smallest(whole, shows, until=NEVER) is whole
    assert len(tried) == 4  # the spec, two fields, and one of two equal items


def test_a_finding_is_the_same_with_another_value_but_not_about_another_object() -> None:
    plan = Plan("desk", Fault.LATE)
    finding = Finding(plan, "sent 12 times", ["~ Lamp desk: spec.size is 1, should be 2"])

    assert is_same(finding, Finding(plan, "sent 9 times", ["~ Lamp desk: spec.size is 3, should be 4", "more"]))
    assert not is_same(finding, Finding(plan, "sent 12 times", ["~ Lamp wall: spec.size is 1, should be 2"]))
    assert not is_same(finding, Finding(plan, "ended", finding.diff))
    assert not is_same(finding, Finding(Plan("desk", Fault.DOWN), finding.problem, finding.diff))
