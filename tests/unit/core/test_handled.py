"""Handled: what of an object counts as a change, and what does not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bonny.core.handled import handled_state
from bonny.core.objects import decode_item, decode_page
from tests.support.core import item, thing

OWNER = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}


@pytest.mark.parametrize(
    "same",
    [
        pytest.param({"status": {"seen": True}}, id="status"),
        pytest.param({"version": 99}, id="version"),
        # Regression: lists leave out apiVersion and kind, and each relist made ConfigMaps look changed.
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, id="type"),
    ],
)
def test_bookkeeping_of_the_server_is_no_change(same: Any) -> None:
    assert handled_state(item(data={"a": "1"}, **same), with_status=False) == handled_state(
        item(data={"a": "1"}), with_status=False
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"data": {"a": "2"}}, id="content"),
        pytest.param({"uid": "another"}, id="UID"),
        pytest.param({"labels": {"x": "y"}}, id="labels"),
        pytest.param({"owners": [OWNER]}, id="owners"),
        pytest.param({"deleting": True}, id="deletion"),
    ],
)
def test_content_labels_owners_and_deletion_are_changes(other: Any) -> None:
    old, new = item(data={"a": "1"}), item(**{"data": {"a": "1"}, **other})

    assert handled_state(old, with_status=False) != handled_state(new, with_status=False)


@pytest.mark.parametrize(
    ("metadata", "same"),
    [
        ({"managedFields": [{"manager": "x"}]}, True),
        ({"annotations": {"x": "y"}}, False),
        ({"finalizers": ["x/y"]}, False),
    ],
    ids=["managed fields", "annotations", "finalizers"],
)
def test_of_the_other_metadata_annotations_and_finalizers_are_changes(metadata: Any, same: bool) -> None:
    plain = thing(data={"a": "1"})
    given = {**plain, "metadata": {**plain["metadata"], **metadata}}
    old, new = (decode_item(msgspec.json.encode(shown)) for shown in (plain, given))

    assert (handled_state(old, with_status=False) == handled_state(new, with_status=False)) is same


def test_the_order_of_labels_is_no_change() -> None:
    ab, ba = (item(labels=labels) for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))

    assert handled_state(ab, with_status=True) == handled_state(ba, with_status=True)
    assert decode_item(ab.raw) == ab


# --- generations ------------------------------------------------------------------------------------------------------


def test_with_a_generation_the_content_is_not_looked_at_and_status_only_on_request() -> None:
    def state(size: int, seen: bool, *, with_status: bool) -> object:
        known = item(generation=3, spec={"size": size}, status={"seen": seen})
        return handled_state(known, with_status=with_status)

    assert state(1, True, with_status=False) == state(2, False, with_status=False)
    assert state(1, True, with_status=True) != state(1, False, with_status=True)


def test_an_equal_generation_hides_other_content_unless_it_is_not_trusted() -> None:
    """As in a history that was rewritten by a restore from a backup."""
    old, new = item(version=5, generation=2, spec=5), item(version=9, generation=2, spec=7)

    assert handled_state(old, with_status=False) == handled_state(new, with_status=False)
    states = [handled_state(one, with_status=False, trust_generation=False) for one in (old, new)]
    assert states[0].content != states[1].content


@pytest.mark.parametrize(
    ("generation", "with_status", "same"),
    [
        # A ConfigMap has no generation, and its data is not there to be compared.
        pytest.param(0, False, False, id="no generation"),
        pytest.param(2, False, True, id="a generation"),
        # Regression: with `on_status`, changes of the status of such a kind were never handled.
        pytest.param(2, True, False, id="a generation says nothing of the status"),
    ],
)
def test_of_metadata_alone_a_new_version_is_new_content_unless_a_generation_says_otherwise(
    generation: int, with_status: bool, same: bool
) -> None:
    old, new = (
        handled_state(item(version=version, generation=generation), with_status=with_status, metadata_only=True)
        for version in (5, 6)
    )

    assert (old == new) is same


# --- objects that nobody can decode -----------------------------------------------------------------------------------


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000


@pytest.mark.parametrize("with_status", [False, True])
@pytest.mark.parametrize("generation", [b"", b',"generation":3'], ids=["no generation", "generation"])
@pytest.mark.parametrize("content", [DEEP, rb'"\ud800"', b'"\xff"', b"1e999"], ids=["deep", "half", "bytes", "number"])
def test_what_cannot_be_decoded_is_another_state_with_each_version(
    content: bytes, generation: bytes, with_status: bool
) -> None:
    """Regression: the stream that showed a change of it fell, and every object of its kind was handled again."""
    head = b'{"metadata":{"name":"w1","uid":"u"' + generation + b',"resourceVersion":"'
    items = b",".join(head + version + b'"},"status":' + content + b"}" for version in (b"5", b"5", b"6"))
    shown = decode_page(b'{"metadata":{"resourceVersion":"6"},"items":[' + items + b"]}").items
    old, again, new = (handled_state(known, with_status=with_status) for known in shown)

    assert old == again
    if content is DEEP:
        assert (old == new) is (bool(generation) and not with_status)
