"""Life: what an operator did more often than in the life without a fault, up to the chapter in which a life ends."""

from __future__ import annotations

from bonny_dev.prove.life import Reference, counted, more_often
from bonny_dev.prove.points import API, Chapter, Sort
from bonny_dev.prove.state import Nature


def sort(chapter: Chapter, verb: str) -> Sort:
    return chapter, API, verb, "configmaps desk-3"


REFERENCE = Reference(
    {},
    [
        ("created", sort(Chapter.CHANGED, "create")),
        ("deleted", sort(Chapter.REDUCED, "delete")),
        ("created", sort(Chapter.AGAIN, "create")),
    ],
    Nature(),
    frozenset(),
)


def test_a_life_that_ends_early_is_compared_with_the_chapters_that_it_had() -> None:
    """Regression: a deletion by an old state was set off against one that comes later without a fault, too."""
    done = counted([("created", sort(Chapter.CHANGED, "create")), ("deleted", sort(Chapter.CHANGED, "delete"))])

    assert more_often(done, REFERENCE.done_until(Chapter.CHANGED)) == ["+ deleted configmaps desk-3 1 time, not 0"]
    assert more_often(done, REFERENCE.done_until(Chapter.AGAIN)) == []


def test_deletions_come_first() -> None:
    lines = more_often({"created configmaps a": 2, "deleted configmaps b": 1}, {"created configmaps a": 1})

    assert lines == ["+ deleted configmaps b 1 time, not 0", "+ created configmaps a 2 times, not 1"]
