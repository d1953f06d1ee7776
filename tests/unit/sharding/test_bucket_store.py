"""The store of a replica that shares, beside one that has all objects: it has the same, but for those of others."""

from __future__ import annotations

import json
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from bonny.core.objects import Item, decode_item
from bonny.core.store import Delta, Store
from bonny.core.watch import Begin, Change, Gone, Put, Sweep
from bonny.resource import OWNER_UID
from bonny.sharding.streams import BucketStore, owner_uid

BUCKETS: Final = {"owner-a": 0, "owner-b": 1, "": 2}
NAMES: Final = ("one", "two", "three")


def item(name: str, owner: str, version: int) -> Item:
    labels = {OWNER_UID: owner} if owner else {}
    metadata = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": str(version), "labels": labels}
    return decode_item(json.dumps({"metadata": metadata}).encode())


def bucket(of: Item) -> int:
    return BUCKETS[owner_uid(of)]


steps_of_a_server = st.lists(
    st.tuples(
        st.sampled_from(["put", "gone", "list", "old"]), st.sampled_from(NAMES), st.sampled_from(sorted(BUCKETS))
    ),
    max_size=30,
)


@given(steps_of_a_server, st.sets(st.sampled_from(sorted(BUCKETS.values()))))
def test_it_has_exactly_the_objects_of_its_buckets(steps: list[tuple[str, str, str]], shown: set[int]) -> None:
    """Objects change their owners, leave, return, and are missing in lists; some events come twice."""
    whole, ours = Store(), BucketStore(bucket, shown)
    server: dict[str, Item] = {}
    told: dict[str, Item] = {}

    def both(change: Change) -> None:
        list(whole.apply(change))
        for delta in ours.apply(change):
            if delta.new is None:
                assert told.pop(delta.key.name) is not None
            else:
                told[delta.key.name] = delta.new

    for version, (what, name, owner) in enumerate(steps, start=10):
        match what:
            case "put":
                server[name] = item(name, owner, version)
                both(Put(server[name], live=True))
            case "gone" if name in server:
                both(Gone(item(name, owner_uid(server.pop(name)), version)))
            case "old" if name in server:
                both(Put(item(name, owner_uid(server[name]), 1), live=True))
            case "list":
                server.pop(name, None)  # its deletion was missed
                both(Begin(version, restored=False))
                for each in server.values():
                    both(Put(each, live=False))
                both(Sweep())
        kept = {each.key.name: each for each in ours}
        assert kept == {each.key.name: each for each in whole if bucket(each) in shown}
        assert told == kept, "whoever follows it knows the same"
        assert ours.bytes == sum(len(each.raw) for each in ours)


def test_a_bucket_that_is_dropped_while_a_sweep_is_read_in_parts_leaves_nothing_behind() -> None:
    store = BucketStore(bucket, {0, 1})
    for name, owner in (("one", "owner-a"), ("two", "owner-b"), ("three", "owner-b")):
        list(store.apply(Put(item(name, owner, 1), live=True)))
    list(store.apply(Begin(2, restored=False)))
    deltas = iter(store.apply(Sweep()))
    swept = [next(deltas).key.name]
    dropped = {key.name for key in store.drop(1)}
    swept += [delta.key.name for delta in deltas]
    assert sorted([*swept, *dropped]) == sorted(NAMES), "each once"
    assert len(store) == 0


def test_objects_of_other_replicas_are_counted_and_not_kept() -> None:
    store = BucketStore(bucket, {0})
    for version in (1, 2):
        assert list(store.apply(Put(item("one", "owner-b", version), live=True))) == []
    assert (store.foreign, len(store), store.bytes) == (2, 0, 0)


def test_an_object_that_goes_to_another_bucket_has_left() -> None:
    store = BucketStore(bucket, {0})
    mine = item("one", "owner-a", 1)
    list(store.apply(Put(mine, live=True)))
    assert list(store.apply(Put(item("one", "owner-b", 2), live=True))) == [Delta(mine.key, mine, None, live=True)]
    assert len(store) == 0
