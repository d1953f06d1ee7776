"""The filters as the check of a scheduler, and what they remember."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bonny.filters import allocatable, fits, index, least_allocated, most_allocated, room, taints
from bonny.filters.index import Index
from bonny.scheduler import heap, nodes
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.views import PodView
from tests.support.effort import examples
from tests.support.scheduling import cluster, item, names, node, pod_view


def test_only_members_are_in_it() -> None:
    cache, members = cluster(3), {"n0", "n2"}
    known = Nodes(cache, fits, member=members.__contains__)
    assert names(known) == ["n0", "n2"]

    members.add("n1")
    members.remove("n0")
    for name in ("n0", "n1"):
        known.touch(name)

    assert sorted(names(known)) == ["n1", "n2"]
    assert sorted(names(known.fitting(pod_view(cpu="1")))) == ["n1", "n2"]


def test_what_is_not_looked_at_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Nodes(cluster(50), fits)
    decoded: list[bytes] = []
    decode = room._decode_node
    monkeypatch.setattr(room, "_decode_node", lambda raw: decoded.append(raw) or decode(raw))
    monkeypatch.setattr(msgspec.json, "decode", lambda *_: pytest.fail("a whole object was decoded"))

    assert len([view for view in known if view.labels["kubernetes.io/hostname"] == "n7"]) == 1
    assert decoded == []
    assert allocatable(known[7])["cpu"] == 4000
    assert taints(known[7]) == ()
    assert len(decoded) == 1


def test_it_holds_the_same_views_however_often_it_is_asked() -> None:
    known = Nodes(cluster(3), fits)

    assert list(known) == list(known.fitting(pod_view())) == list(known)


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """The nodes about which a function is asked from now on."""
    asked: list[str] = []
    function = getattr(index, name)

    def counting(*arguments: Any) -> Any:
        asked.append(arguments[-1].name)
        return function(*arguments)

    monkeypatch.setattr(index, name, counting)
    return asked


def test_pods_of_one_shape_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    as_such, by_room = counted(monkeypatch, "fits_spec"), counted(monkeypatch, "fits_room")
    cache = cluster(100)
    known = Nodes(cache, fits)
    for number in range(20):
        one = pod_view(f"p{number}", cpu="100m")
        best = known.fitting(one).best(most_allocated)
        assert best is not None
        cache.assume(one, best.name)

    assert len(as_such) == 100
    assert len(by_room) == 100 + 19


def test_the_emptiest_is_found_for_all_shapes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    as_such, by_room = counted(monkeypatch, "fits_spec"), counted(monkeypatch, "fits_room")
    looked_at = counted(monkeypatch, "fullness")
    cache = cluster(100)
    known = Nodes(cache, fits)
    for number in range(20):
        one = pod_view(f"p{number}", cpu=f"{number + 1}m")
        best = known.fitting(one).best(least_allocated)
        assert best is not None
        cache.assume(one, best.name)

    assert (len(as_such), len(by_room), len(looked_at)) == (100, 20, 100 + 19)


def test_the_best_node_is_found_behind_many_emptier_ones_without_room() -> None:
    """They have memory, of which the pod wants little, and no CPU."""
    cache = cluster(2 * index.MOST_PASSED + 2, cpu="4", memory="8Gi")
    for number in range(2 * index.MOST_PASSED):
        cache.assume(pod_view(f"busy{number}", cpu="3500m", memory="1Mi"), f"n{number}")
    right, fuller = 2 * index.MOST_PASSED, 2 * index.MOST_PASSED + 1
    cache.assume(pod_view("large", cpu="1", memory="7Gi"), f"n{right}")
    cache.assume(pod_view("larger", cpu="1", memory="7900Mi"), f"n{fuller}")
    known = Nodes(cache, fits)

    assert known.fitting(pod_view(cpu="1", memory="1Mi")).best(least_allocated) is known.named(f"n{right}")


def test_where_every_node_has_another_size_the_best_is_found_among_all() -> None:
    cache = AssumeCache()
    for number in range(3 * index.MOST_SIZES):
        cache.see_node(f"n{number}", item(node(f"n{number}", cpu=str(2 ** (number // 8) + number))))
    known, one = Nodes(cache, fits), pod_view(cpu="1")

    best = known.fitting(one).best(least_allocated)

    assert best is not None
    assert least_allocated(one, best) == max(least_allocated(one, view) for view in known)


def test_nodes_that_differ_by_kilobytes_are_of_one_size() -> None:
    cache = AssumeCache()
    for number in range(3 * index.MOST_SIZES):
        cache.see_node(f"n{number}", item(node(f"n{number}", memory=f"{32_880_964 + 8 * number}Ki")))
    known = Nodes(cache, fits)

    assert known.fitting(pod_view(cpu="1")).best(least_allocated) is not None
    (constraints,) = known.derived(Index)._constraints.values()
    assert len(constraints.rankings) == 1
    assert known.derived(Index)._shapes == {}


def test_the_best_of_equals_is_the_one_that_rested_longest() -> None:
    cache = cluster(3)
    known = Nodes(cache, fits)
    chosen = []
    for number in range(6):
        one = pod_view(f"p{number}", cpu="1")
        best = known.fitting(one).best(least_allocated)
        assert best is not None
        cache.assume(one, best.name)
        chosen.append(best.name)

    assert sorted(chosen[:3]) == sorted(chosen[3:]) == ["n0", "n1", "n2"]


def test_nothing_fits_into_nothing() -> None:
    assert Nodes(AssumeCache(), fits).fitting(pod_view()).best(least_allocated) is None
    assert not Nodes(cluster(1), fits).fitting(pod_view(cpu="9"))


LONER = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "noisy"}}}


def test_the_best_node_is_none_from_which_pods_that_run_keep_this_one_away() -> None:
    cache = cluster(2)
    known = Nodes(cache, fits)
    required = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [LONER]}}
    cache.assume(pod_view("loner", affinity=required), "n0")
    cache.assume(pod_view("big", cpu="3"), "n1")

    best = known.fitting(pod_view(cpu="1", labels={"app": "noisy"})).best(least_allocated)

    assert best is known.named("n1")
    assert known.fitting(pod_view(cpu="1")).best(least_allocated) is known.named("n0")


def test_functions_that_are_made_anew_for_each_pod_fill_no_memory() -> None:
    known = Nodes(cluster(3), fits)
    for number in range(50):
        known.fitting(pod_view(cpu="1")).best(lambda pod, view, number=number: float(number))  # type: ignore[misc]

    (shape,) = known.derived(Index)._shapes.values()
    assert len(shape.rankings) == index.MOST_SCORES


def test_shapes_that_were_not_asked_for_lately_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "CACHED_RESULTS", 0)
    known = Nodes(cluster(2), fits)
    for cpu in range(1, 100):
        assert known.fitting(pod_view(cpu=f"{cpu}m"))

    assert len(known.derived(Index)._shapes) == index.FEWEST_SHAPES


def test_nodes_under_ever_new_names_fill_no_memory() -> None:
    cache = cluster(2)
    known = Nodes(cache, fits)
    one = pod_view(cpu="1")
    for number in range(2, 1000):
        cache.see_node(f"n{number}", item(node(f"n{number}")))
        cache.see_node(f"n{number - 2}", None)
        assert names(known.fitting(one)) == [f"n{number - 1}", f"n{number}"]
        assert known.fitting(one).best(least_allocated) is not None
        assert known.fitting(one).best(most_allocated) is not None

    (shape,), (constraints,) = known.derived(Index)._shapes.values(), known.derived(Index)._constraints.values()
    (ranking,) = constraints.rankings.values()
    assert len(known._changed) == 2
    assert len(shape.fits) == len(constraints.fits) == 2
    assert len(shape.rankings[most_allocated]._items) <= 2 * 3 + heap.SLACK + 1
    assert len(ranking._items) <= 2 * 3 + heap.SLACK + 1


def test_a_size_counts_only_while_there_is_a_node_of_it() -> None:
    cache = cluster(1)
    known = Nodes(cache, fits)
    for number in range(3 * index.MOST_SIZES):
        cache.see_node("n1", item(node("n1", cpu=str(2**number))))
        assert known.fitting(pod_view(cpu="1m")).best(least_allocated) is not None
        cache.see_node("n1", None)

    (constraints,) = known.derived(Index)._constraints.values()
    assert len(constraints.rankings) <= 2
    assert known.derived(Index)._shapes == {}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 3), st.none()),
        st.tuples(st.just("assume"), st.integers(0, 3), st.integers(0, 4)),
        st.tuples(st.just("give back"), st.integers(0, 3), st.none()),
        st.tuples(st.just("node"), st.integers(0, 4), st.sampled_from(["1", "2", "4", "cordoned", None])),
    ),
    max_size=40,
)
SIZES = ("100m", "1", "2", "3")


@given(steps=STEPS, score=st.sampled_from([least_allocated, most_allocated]), passed=st.sampled_from([1, 16]))
@settings(max_examples=examples(400))
def test_what_is_remembered_is_what_a_fresh_look_would_find(
    steps: list[tuple[str, int, Any]], score: nodes.Score, passed: int
) -> None:
    cache = cluster(5, cpu="2")
    with patch.object(index, "MOST_PASSED", passed):
        play(cache, steps, score)


def play(cache: AssumeCache, steps: list[tuple[str, int, Any]], score: nodes.Score) -> None:
    known = Nodes(cache, fits)
    assumed: list[PodView] = []
    for number, (what, first, second) in enumerate(steps):
        match what:
            case "assume":
                one = pod_view(f"p{number}", cpu=SIZES[first])
                cache.assume(one, f"n{second}")
                assumed.append(one)
            case "give back" if assumed:
                cache.give_back(assumed.pop(first % len(assumed)).uid)
            case "node":
                cpu = "4" if second == "cordoned" else second
                changed = node(f"n{first}", cpu=cpu, unschedulable=second == "cordoned") if second else None
                cache.see_node(f"n{first}", item(changed) if changed else None)
        picky: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": "n0"}} if number % 3 == 0 else {}
        asked = pod_view(cpu=SIZES[first % len(SIZES)], **picky)
        fresh = [view for view in cache.nodes.values() if fits(asked, view)]
        best = known.fitting(asked).best(score)

        assert set(known.fitting(asked)) == set(fresh)
        assert (best is None) == (not fresh)
        if best is not None:
            assert best in fresh
            assert score(asked, best) == pytest.approx(max(score(asked, view) for view in fresh))
