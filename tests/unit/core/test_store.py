"""The objects of one stream, as the server last told them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.objects import Item
from bonny.core.store import Delta, Store
from bonny.core.watch import Begin, Change, Gone, Put, Sweep
from bonny.resource import Key
from tests.support.core import item

W1 = Key("default", "w1")


def listed(*items: Item, version: int = 100, restored: bool = False) -> list[Change]:
    """The changes of a complete list."""
    return [Begin(version, restored), *(Put(known, live=False) for known in items), Sweep()]


def filled(*changes: Change) -> Store:
    store = Store()
    apply(store, changes)
    return store


def apply(store: Store, changes: Iterable[Change]) -> list[Delta]:
    return [delta for change in changes for delta in store.apply(change)]


def test_a_new_object_is_an_addition() -> None:
    new = item(version=5)

    assert Store().apply(Put(new, live=True)) == [Delta(W1, None, new, True)]


def test_a_change_tells_what_was_before() -> None:
    old, new = item(version=5), item(version=6)
    store = filled(Put(old, live=True))

    assert store.apply(Put(new, live=False)) == [Delta(W1, old, new, False)]
    assert store.get(W1) is new


def test_the_same_version_again_is_no_difference() -> None:
    """A list that follows a watch shows mostly what is known."""
    store = filled(Put(item(version=5), live=True))

    assert apply(store, listed(item(version=5))) == []


def test_an_index_survives_a_function_that_says_something_else_of_the_same_object() -> None:
    """Regression: a KeyError ended the stream, again and again; or the entry of another object was removed."""
    store = Store()
    said = iter([["a"], ["b"], ["c"], ["d"], ["d"], ["e"]])
    store.add_index("by", lambda _: next(said))
    for put in (item("w1", version=5), item("w1", version=6), item("w2", version=7), item("w1", version=8)):
        store.apply(Put(put, live=True))

    assert store.lookup("by", "d") == {Key("default", "w2")}
    assert store.lookup("by", "e") == {W1}


def test_an_event_never_brings_back_an_older_version() -> None:
    new = item(version=6)
    store = filled(Put(new, live=True))

    assert store.apply(Put(item(version=5), live=True)) == []
    assert store.get(W1) is new


def test_a_list_never_brings_back_a_version_older_than_itself_knows() -> None:
    new = item(version=60)
    store = filled(Put(new, live=True))

    assert apply(store, listed(item(version=5), version=50)) == []
    assert store.get(W1) is new


def test_a_list_that_is_newer_than_an_entry_is_right_about_it() -> None:
    """Regression: after a restore that only raised the revisions (etcdutl --bump-revision, as its manual advises) the
    store kept objects in states that the server had never had."""
    lost, kept = item(version=60), item(version=40)
    store = filled(Put(lost, live=True))

    assert apply(store, listed(kept, version=1_000_060)) == [Delta(W1, lost, kept, False)]


@pytest.mark.parametrize("uid", ["uid-w1", "another"])
def test_a_newer_list_that_shows_an_older_version_says_that_the_history_was_rewritten(uid: str) -> None:
    store = filled(*listed(item(version=60)))
    assert not store.rewritten

    apply(store, [Begin(100, restored=False), Put(item(version=40, uid=uid), live=False), Put(item("b"), live=False)])

    assert store.rewritten
    apply(store, listed(item(version=40), version=100, restored=True))
    assert not store.rewritten


@pytest.mark.parametrize(
    "changes",
    [
        listed(item(version=40), version=50),
        listed(item(version=40), version=50, restored=True),
        listed(item(version=61), version=100),
        listed(item(version="")),
        [Put(item(version=40), live=True)],
        listed(),
    ],
    ids=["older-list", "restored", "newer", "without-versions", "event", "gone"],
)
def test_nothing_else_says_that_the_history_was_rewritten(changes: list[Change]) -> None:
    store = filled(*listed(item(version=60)))

    apply(store, changes)

    assert not store.rewritten


def test_a_restored_server_may_show_older_versions() -> None:
    lost, kept = item(version=60), item(version=40)
    store = filled(Put(lost, live=True))

    assert apply(store, listed(kept, version=50, restored=True)) == [Delta(W1, lost, kept, False)]


def test_a_restored_server_may_show_another_object_under_a_known_version() -> None:
    """Regression: the same UID and version passed for the same state, although the history is another one."""
    lost, other = item(version=60, spec=1), item(version=60, spec=2)
    store = filled(Put(lost, live=True))

    assert apply(store, listed(other, version=60, restored=True)) == [Delta(W1, lost, other, False)]


def test_versions_do_not_fall_any_more_once_the_list_after_a_restore_is_complete() -> None:
    store = filled(*listed(item(version=40), version=50, restored=True))

    assert store.apply(Put(item(version=30), live=True)) == []


def test_a_recreated_object_shows_both_uids_in_one_difference() -> None:
    old, new = item(version=5, uid="a"), item(version=9, uid="b")
    store = filled(Put(old, live=True))

    assert apply(store, listed(new)) == [Delta(W1, old, new, False)]


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    store = filled(Put(item(version="x"), live=True))

    (delta,) = store.apply(Put(item(version="a"), live=True))

    assert delta.new is store.get(W1)


def test_a_deletion_tells_the_state_of_its_event() -> None:
    """It is the last one, newer than what was held."""
    last = item(version=7, spec={"size": 3})
    store = filled(Put(item(version=5), live=True))

    assert store.apply(Gone(last)) == [Delta(W1, last, None, True)]
    assert (len(store), store.apply(Gone(last))) == (0, [])


def test_a_deletion_of_an_older_uid_does_not_touch_its_successor() -> None:
    new = item(version=9, uid="b")
    store = filled(Put(new, live=True))

    assert store.apply(Gone(item(version=7, uid="a"))) == []
    assert store.get(W1) is new


def test_a_deletion_of_a_successor_that_was_never_seen_removes_what_was_seen() -> None:
    """Regression: the deletion was told of the unseen UID, and nobody learned that the seen one is gone."""
    seen = item(version=5, uid="a")
    store = filled(Put(seen, live=True))

    assert store.apply(Gone(item(version=9, uid="b"))) == [Delta(W1, seen, None, True)]


def test_a_deletion_of_what_was_never_seen_is_no_difference() -> None:
    assert Store().apply(Gone(item())) == []


def test_what_a_complete_list_lacks_is_removed_with_its_last_known_state() -> None:
    a, b = item("a", version=1), item("b", version=2)
    store = filled(*listed(a, b))

    assert apply(store, listed(a)) == [Delta(b.key, b, None, False)]
    assert list(store) == [a]


def test_nothing_is_removed_before_the_list_is_complete() -> None:
    a, b = item("a"), item("b")
    store = filled(*listed(a, b))

    assert apply(store, [Begin(100, restored=False), Put(a, live=False)]) == []
    assert set(store.keys()) == {a.key, b.key}


def test_a_list_that_starts_over_forgets_what_its_first_try_saw() -> None:
    """`b` was deleted between the two tries."""
    a, b = item("a"), item("b")
    store = filled(Begin(100, restored=False), Put(a, live=False), Put(b, live=False))

    assert apply(store, listed(a)) == [Delta(b.key, b, None, False)]


def test_an_object_that_the_watch_showed_is_not_removed_by_the_list_before_it() -> None:
    store = filled(*listed(item("a")), Put(item("b", version=101), live=True))

    assert list(store.apply(Sweep())) == []


def test_an_older_form_in_a_list_still_shows_that_the_object_exists() -> None:
    store = filled(Put(item(version=60), live=True))

    assert apply(store, listed(item(version=5), version=50)) == []
    assert len(store) == 1


# --- indexes ----------------------------------------------------------------------------------------------------------


def by_label(known: Item) -> Iterable[str]:
    return (known.meta.labels or {}).values()


def test_an_object_is_found_under_each_of_its_values() -> None:
    store = filled(Put(item(labels={"a": "x", "b": "y"}), live=True))
    store.add_index("label", by_label)

    assert store.lookup("label", "x") == store.lookup("label", "y") == {W1}
    assert store.lookup("label", "z") == frozenset()


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.lists(st.sampled_from(["x", "y", "z", "x"]), max_size=3)
CHANGES = st.lists(
    st.one_of(
        st.builds(
            lambda name, uid, version, values, live: Put(
                item(name, uid=uid, version=version, labels={str(at): value for at, value in enumerate(values)}),
                live=live,
            ),
            NAMES,
            st.sampled_from(["u1", "u2"]),
            st.integers(1, 20),
            VALUES,
            st.booleans(),
        ),
        st.builds(
            lambda name, uid, version: Gone(item(name, uid=uid, version=version)),
            NAMES,
            st.sampled_from(["u1", "u2"]),
            st.integers(1, 20),
        ),
        st.builds(Begin, st.integers(1, 20), st.booleans()),
        st.just(Sweep()),
    ),
    max_size=40,
)


@given(changes=CHANGES, at=st.integers(0, 40))
def test_indexes_are_right_whatever_changes(changes: list[Change], at: int) -> None:
    store = Store()
    for number, change in enumerate(changes):
        if number == at:
            store.add_index("label", by_label)
        store.apply(change)
    store.add_index("label", by_label)

    for value in ("x", "y", "z"):
        expected = {known.key for known in store if value in by_label(known)}
        assert store.lookup("label", value) == expected


@given(changes=CHANGES)
def test_differences_added_up_are_the_store(changes: list[Change]) -> None:
    """Each starts from where the one before it ended: that is all that subscribers ever see."""
    store = Store()
    mirror: dict[Key, Item] = {}
    for change in changes:
        for delta in store.apply(change):
            before = mirror.pop(delta.key, None)
            assert (before is None) == (delta.old is None)
            if before is not None and delta.old is not None:
                assert before.meta.uid == delta.old.meta.uid
                assert delta.old is before or delta.new is None
            if delta.new is not None:
                mirror[delta.key] = delta.new

    assert {known.key: known for known in store} == mirror


@given(changes=CHANGES)
def test_only_a_list_ever_makes_an_entry_older(changes: list[Change]) -> None:
    store = Store()
    for change in changes:
        for _, old, new, live in store.apply(change):
            if live and old is not None and new is not None and not store._restored:
                assert new.version >= old.version


def test_a_thread_may_list_while_another_one_stores() -> None:
    """Regression: a `def` handler that listed all objects failed at times, when the watch showed a new one meanwhile.

    The trace stands for the other thread, which may run wherever Python code is called.
    """
    store = filled(*(Put(item(name=f"w{number}", version=5), live=True) for number in range(3)))

    def stores_another(frame: Any, event: str, argument: Any) -> None:
        if frame.f_code is not Store.items.__code__:
            name = f"another-{len(store._items)}"
            store._items[Key("default", name)] = item(name=name, version=6)

    before = sys.gettrace()
    sys.settrace(stores_another)
    try:
        found = store.items()
    finally:
        sys.settrace(before)
    assert [each.meta.name for each in found][:3] == ["w0", "w1", "w2"]
