"""The pods that wait for a node: names of tests are the rules of the module."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.filters import fits
from bonny.scheduler import heap
from bonny.scheduler.heap import SLACK
from bonny.scheduler.nodes import Unchecked
from bonny.scheduler.pending import PARKED_SECONDS, Pending, PodState
from bonny.scheduler.views import PodView
from tests.support.scheduling import item, pod

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
Order = tuple[int, str]
"""Negative priority, and creation time."""

VERSIONS = count()


def view(uid: str, order: Order, *, changed: bool = False) -> PodView:
    """A version of a pod; `changed`: with labels that no other version has."""
    priority, created = order
    labels = {"version": str(next(VERSIONS))} if changed else {}
    return PodView(item(pod(uid, priority=-priority, labels=labels), uid=uid, created=created))


def add(pending: Pending, uid: str, order: Order, *, changed: bool = False) -> None:
    """Show a pod; without `changed` with the labels that it has already."""
    entry = pending.pods.get(uid)
    if entry is not None and not changed:
        pending.add(entry.pod)
    else:
        pending.add(view(uid, order, changed=changed))


def taken_from(pending: Pending, *, now: float) -> str | None:
    taken = pending.take(now=now)
    return None if taken is None else taken.uid


def queue(**orders: Order) -> Pending:
    pending = Pending(fits.shape)
    for uid, order in orders.items():
        add(pending, uid, order)
    return pending


def drained(pending: Pending, *, now: float = 0.0) -> list[str]:
    found = []
    while (uid := taken_from(pending, now=now)) is not None:
        found.append(uid)
    return found


def test_the_highest_priority_is_first_and_of_equals_the_oldest() -> None:
    pending = queue(a=(0, NEW), b=(0, OLD), c=(-10, NEW), d=(5, OLD))

    assert drained(pending) == ["c", "b", "a", "d"]


@given(orders=st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([OLD, NEW])), max_size=20))
def test_pods_are_taken_in_order_each_once(orders: list[Order]) -> None:
    pending = Pending(fits.shape)
    for number, order in enumerate(orders):
        add(pending, str(number), order)
        add(pending, str(number), order)

    assert drained(pending) == [str(number) for _, number in sorted(zip(orders, range(len(orders)), strict=True))]


def test_a_pod_that_was_tried_comes_back_after_ever_longer_waits() -> None:
    pending, now, waits = queue(a=(0, OLD)), 0.0, []
    for _ in range(6):
        assert taken_from(pending, now=now) == "a"
        pending.retry("a", now=now)
        due = pending.next_due()
        assert due is not None
        assert taken_from(pending, now=due - 0.01) is None
        waits.append(due - now)
        now = due

    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_pod_whose_spec_changed_does_not_wait_where_the_check_knows_no_shapes() -> None:
    pending = Pending(Unchecked().shape)
    versions = []
    for generation in (1, 1, 2):
        changed = pod("a")
        changed["metadata"]["generation"] = generation
        versions.append(PodView(item(changed, uid="a")))
    pending.add(versions[0])
    taken_from(pending, now=0.0)
    pending.retry("a", now=0.0, parked=True)

    pending.add(versions[1])
    assert taken_from(pending, now=0.0) is None
    pending.add(versions[2])
    assert taken_from(pending, now=0.0) == "a"


def test_the_servers_advice_is_a_floor() -> None:
    pending = queue(a=(0, OLD))
    taken_from(pending, now=0.0)

    pending.retry("a", now=0.0, after=7.0)

    assert pending.next_due() == 7.0


def test_a_parked_pod_waits_for_a_change_and_not_for_less_than_its_wait() -> None:
    pending = queue(a=(0, OLD))
    taken_from(pending, now=0.0)
    pending.retry("a", now=0.0, parked=True)
    assert taken_from(pending, now=100.0) is None

    pending.wake(["a"])

    assert taken_from(pending, now=100.0) == "a"
    pending.retry("a", now=100.0, parked=True)
    pending.wake(["a"])
    assert taken_from(pending, now=101.9) is None
    assert taken_from(pending, now=102.0) == "a"


def test_a_parked_pod_is_tried_after_five_minutes_whatever_was_overlooked() -> None:
    pending = queue(a=(0, OLD))
    taken_from(pending, now=0.0)
    pending.retry("a", now=0.0, parked=True)

    assert pending.next_due() == PARKED_SECONDS == 300.0
    assert taken_from(pending, now=300.0) == "a"


def test_what_changed_does_not_wait_and_its_failures_are_forgotten() -> None:
    pending = queue(a=(0, OLD))
    for now in (0.0, 100.0):
        taken_from(pending, now=now)
        pending.retry("a", now=now, parked=True)

    add(pending, "a", (0, OLD))
    assert taken_from(pending, now=100.0) is None
    add(pending, "a", (0, OLD), changed=True)

    assert taken_from(pending, now=100.0) == "a"
    pending.retry("a", now=100.0)
    assert pending.next_due() == 101.0


def test_what_changed_while_it_was_taken_comes_back_at_once() -> None:
    pending = queue(a=(0, OLD))
    taken_from(pending, now=0.0)
    add(pending, "a", (0, OLD), changed=True)
    assert taken_from(pending, now=0.0) is None, "it was handed out twice"

    pending.retry("a", now=0.0, parked=True)

    assert taken_from(pending, now=0.0) == "a"


def test_a_forgotten_pod_does_not_come_back() -> None:
    pending = queue(a=(0, OLD), b=(0, NEW))
    taken_from(pending, now=0.0)
    pending.forget("a")
    pending.forget("b")

    pending.retry("a", now=0.0)
    pending.wake(["a"])

    assert drained(pending, now=1000.0) == []
    assert pending.next_due() is None


def test_statistics_say_how_many_stand_where() -> None:
    pending = queue(a=(0, OLD), b=(1, OLD), c=(2, OLD), d=(3, OLD))
    for _ in range(3):
        taken_from(pending, now=0.0)
    pending.retry("a", now=0.0)
    pending.retry("b", now=0.0, parked=True)

    assert pending.statistics() == {PodState.READY: 1, PodState.WAITING: 1, PodState.PARKED: 1, PodState.TAKEN: 1}


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "anew", "take", "retry", "park", "wake", "forget", "later"]), st.integers(0, 4)),
    max_size=60,
)


@given(steps=STEPS)
def test_no_pod_is_lost_and_none_is_handed_out_twice(steps: list[tuple[str, int]]) -> None:
    pending, known, taken, now = Pending(fits.shape), set[str](), set[str](), 0.0
    for what, number in steps:
        uid = str(number)
        match what:
            case "add" | "anew":
                add(pending, uid, (number, OLD), changed=what == "anew")
                known.add(uid)
            case "take":
                found = taken_from(pending, now=now)
                assert found not in taken
                if found is not None:
                    taken.add(found)
            case "retry" | "park" if uid in taken:
                taken.discard(uid)
                pending.retry(uid, now=now) if what == "retry" else pending.retry(uid, now=now, parked=True)
            case "wake":
                pending.wake([uid])
            case "forget":
                pending.forget(uid)
                known.discard(uid)
                taken.discard(uid)
            case "later":
                now += 3.0
    assert sum(pending.statistics().values()) == len(known)
    assert set(drained(pending, now=now + 2 * PARKED_SECONDS)) == known - taken


@pytest.mark.parametrize("parked", [False, True])
def test_pods_that_come_and_go_or_change_leave_nothing_behind(parked: bool) -> None:
    """Regression: nobody takes a pod on a standby, so each that came and went left its place, for ever."""
    pending = queue(stays=(5, OLD))
    for number in range(1_000):
        add(pending, str(number), (0, OLD))
        if parked:
            assert taken_from(pending, now=0.0) == str(number)
            pending.retry(str(number), now=0.0, parked=True)
            pending.wake([str(number)])
        add(pending, "stays", (5, OLD), changed=True)
        pending.forget(str(number))

    assert max(len(pending._ready._items), len(pending._later._items)) <= 2 * 2 + SLACK + 1
    assert drained(pending) == ["stays"]


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "change", "forget", "take", "retry", "park", "wake"]), st.integers(0, 5)),
        max_size=400,
    )
)
def test_taking_out_void_places_changes_no_order(steps: list[tuple[str, int]]) -> None:
    """Against the same queue that never takes them out."""
    swept, kept = Pending(fits.shape), Pending(fits.shape)
    now, taken = 0.0, set[str]()
    with pytest.MonkeyPatch.context() as patch:
        for step, number in steps:
            now, uid, seen = now + 0.7, str(number), []
            for pending, slack in ((swept, 0), (kept, 10**9)):
                patch.setattr(heap, "SLACK", slack)
                match step:
                    case "add" | "change":
                        add(pending, uid, (number, OLD), changed=step == "change")
                    case "forget":
                        pending.forget(uid)
                    case "take":
                        seen.append(taken_from(pending, now=now))
                    case "retry" if uid in taken:
                        pending.retry(uid, now=now)
                    case "park" if uid in taken:
                        pending.retry(uid, now=now, parked=True)
                    case "wake":
                        pending.wake([uid])
            assert len(set(seen)) <= 1
            taken |= {known for known in seen if known is not None}
            taken -= {uid} if step in ("forget", "retry", "park") else set()
            assert swept.next_due() == kept.next_due()
            assert len(swept._ready._items) <= 2 * 6 + 1
