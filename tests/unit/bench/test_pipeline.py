"""The pipeline's workloads: what their figures mean; no contestant is started."""

from __future__ import annotations

import pytest

from bench.harness.writes import Writes
from bench.pipeline.workloads import by_target, percentiles, published
from bonny.resource import Resource


def test_writes_are_told_apart_by_what_was_written_and_our_own_creations_do_not_count() -> None:
    writes = Writes(
        {
            ("POST", "widgets", ""): 10,
            ("PATCH", "widgets", ""): 10,
            ("PATCH", "widgets", "status"): 10,
            ("APPLY", "configmaps", ""): 20,
            ("POST", "events", ""): 5,
        }
    )

    figures = by_target(writes, objects=10)

    assert figures == {
        "writes/object": 4.5,
        "of them children": 2.0,
        "of them statuses": 1.0,
        "of them others": 1.5,
    }


def test_two_writes_for_each_object_are_a_child_and_a_status() -> None:
    writes = Writes({("POST", "widgets", ""): 3, ("APPLY", "widgets", "status"): 3, ("APPLY", "configmaps", ""): 3})

    assert by_target(writes, objects=3)["writes/object"] == 2.0


def test_one_slow_object_in_a_thousand_is_beyond_the_99th_percentile_and_twenty_are_not() -> None:
    assert percentiles([1.0] * 999 + [50.0]) == (1.0, 1.0)
    assert percentiles([1.0] * 980 + [50.0] * 20) == (1.0, 50.0)


def config_map(name: str, *, size: str = "1", owner: str | None) -> Resource:
    references = [] if owner is None else [{"kind": "Widget", "name": owner}]
    return {"metadata": {"name": name, "ownerReferences": references}, "data": {"size": size}}


@pytest.mark.parametrize(
    ("child", "names"),
    [
        (config_map("w0", owner="w0"), {"w0"}),
        (config_map("w0", owner="w1"), set()),
        (config_map("w0", owner=None), set()),
        (config_map("w0", size="2", owner="w0"), set()),
        ({"metadata": {"name": "kube-root-ca.crt"}}, set()),
    ],
    ids=["its-own", "of-another", "without-owner", "another-size", "a-strangers"],
)
def test_only_what_belongs_to_an_object_and_has_its_size_counts_as_its_child(child: Resource, names: set[str]) -> None:
    assert published([child]) == names
