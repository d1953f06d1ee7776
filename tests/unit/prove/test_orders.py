"""Orders: which pairs of writers are tried, how their ends are compared, and how long a write waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from bonny_dev.prove.life import Life, repeated
from bonny_dev.prove.orders import Turn, differs, opposed, turns_of, writers_of
from bonny_dev.prove.plans import Fault, Plan, plans_for, usual
from bonny_dev.prove.points import API, SERVICE, Chapter
from bonny_dev.testing.faults import ProxiedRequest

SHARED = "configmaps shared"
TURN = Turn(Chapter.CREATED, SHARED, "a", "b")


def life(writer: str = "", *, writers: dict[tuple[Chapter, str, str], int] | None = None, **more: Any) -> Life:
    states = {Chapter.CREATED: {"ConfigMap shared": {"data.writer": writer}}}
    return Life(states=states, writers=Counter(writers or {}), **more)


def test_writers_are_counted_by_object_with_any_verb_and_only_with_success() -> None:
    def sent(manager: str, verb: str, what: str, status: int = 200, server: str = API) -> Any:
        request = ProxiedRequest("PATCH", "/", {}, 0.0, status, manager=manager)
        return request, (Chapter.CREATED, server, verb, what)

    counts = writers_of(
        [
            sent("a", "write", SHARED),
            sent("a", "write", f"{SHARED} status"),
            sent("b", "create", SHARED, 409),
            sent("b", "read", SHARED),
            sent("b", "PUT", "/lamps/1", server=SERVICE),
            sent("b", "delete", SHARED),
        ]
    )

    assert counts == {(Chapter.CREATED, SHARED, "a"): 2, (Chapter.CREATED, SHARED, "b"): 1}


def test_two_writers_of_one_object_in_one_chapter_have_a_turn_of_each_pair_of_writes() -> None:
    counts = {
        (Chapter.START, SHARED, "a"): 1,
        (Chapter.START, SHARED, "b"): 1,
        (Chapter.CREATED, SHARED, "a"): 2,
        (Chapter.CREATED, SHARED, "b"): 9,
        (Chapter.CREATED, "lamps desk", "a"): 1,
        (Chapter.CHANGED, SHARED, "a"): 1,
    }
    alone = {**counts, (Chapter.CREATED, SHARED, "b"): 0}

    turns = list(turns_of([life(writers=counts), life(writers=counts)]))

    assert turns == [Turn(Chapter.CREATED, SHARED, "a", "b", nth, after) for nth in (1, 2) for after in (1, 2, 3)]
    assert list(turns_of([life(writers=counts), life(writers=alone)])) == []
    plans = list(plans_for("desk", [], [], turns))
    assert [plan.at for plan in usual(plans)] == [None, None, None, Plan("", Fault.AT_ONCE, Chapter.AGAIN).at, turns[0]]
    assert len({plan.name for plan in plans}) == len(plans)


def test_the_swapped_turn_of_a_swapped_turn_is_the_turn() -> None:
    turn = Turn(Chapter.CREATED, SHARED, "a", "b", 1, 2)

    assert turn.swapped == Turn(Chapter.CREATED, SHARED, "b", "a", 2, 1)
    assert turn.swapped.swapped == turn


def test_the_difference_names_both_orders() -> None:
    (line,) = differs(TURN, [(life("a"), life("b"))])

    assert line == '~ ConfigMap shared: data.writer is "a" after the order b, a, "b" after the order a, b'


def test_a_field_that_differs_by_nature_is_not_a_difference_of_orders() -> None:
    assert differs(TURN, [(life("one"), life("two"))])
    assert differs(TURN, [(life("one"), life("two")), (life("three"), life("four"))]) == []


def lives(*made: Life) -> Iterator[Life]:
    yield from made


@pytest.mark.parametrize(
    ("ends", "problem", "count"),
    [
        (("a", "a"), "", 2),
        (("a", "b", "a", "b"), "the end depends on which of them comes first", 4),
        (("1", "2", "3", "4"), "", 4),
    ],
)
def test_orders_that_end_differently_are_repeated_before_that_is_a_problem(
    ends: tuple[str, ...], problem: str, count: int
) -> None:
    turns, made = list[Turn](), lives(*map(life, ends))

    def live(turn: Turn) -> Life:
        turns.append(turn)
        return next(made)

    assert opposed(live, TURN).problem == problem
    assert turns == [TURN, TURN.swapped, TURN, TURN.swapped][:count]


def test_an_order_that_did_not_come_about_shows_nothing() -> None:
    made = lives(life("a"), life("b", struck=False))

    found = opposed(lambda _: next(made), TURN)

    assert (found.struck, found.problem, found.chapter) == (False, "", Chapter.CREATED)


def test_two_writers_that_undo_each_other_are_both_named() -> None:
    sorts = [(Chapter.CREATED, API, "write", SHARED)] * 9
    writers = {(Chapter.CREATED, SHARED, "lamps/lamp-controller"): 5, (Chapter.CREATED, SHARED, "lamps"): 4}

    assert repeated(life(writers=writers, sorts=sorts)) == (
        "it does not come to rest: the write of configmaps shared (chapter created) was sent 9 times; lamps, "
        "lamps/lamp-controller write that object"
    )
