"""Ledger: own writes are recognised in whichever order events and answers come, and nothing foreign is swallowed."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bonny.core.fields import owned_fields, project
from bonny.core.handled import handled_state
from bonny.core.objects import decode_item
from bonny.resource import Key, Resource

W1 = Key("default", "w1")


@given(st.data())
def test_every_foreign_change_is_told_and_no_own_one_in_whichever_order_events_and_answers_come(
    data: st.DataObject,
) -> None:
    """The server commits writes in some order; each event follows its commit in order, each answer at any time."""
    kinds = data.draw(st.lists(st.sampled_from(["own", "foreign"]), min_size=1, max_size=8))
    writes = OwnWrites()
    told: list[str] = []
    begun: dict[str, bool] = {}
    answers: list[str] = []
    events = [str(number + 1) for number in range(len(kinds))]
    committed = 0
    shown = 0
    while shown < len(events) or answers or committed < len(events):
        choices = []
        if committed < len(events):
            choices.append("commit")
        if shown < committed:
            choices.append("event")
        if answers:
            choices.append("answer")
        match data.draw(st.sampled_from(choices)):
            case "commit":
                version = events[committed]
                if kinds[committed] == "own":
                    writes.begin(W1)
                    answers.append(version)
                    begun[version] = True
                committed += 1
            case "event":
                version = events[shown]
                shown += 1
                if not writes.is_own(W1, version):
                    told.append(version)
                writes.passed(at=data.draw(st.sampled_from([0, shown])))
            case "answer":
                version = answers.pop(data.draw(st.integers(0, len(answers) - 1)))
                told += writes.end(W1, version)

    foreign = [version for version, kind in zip(events, kinds, strict=True) if kind == "foreign"]
    assert sorted(told, key=int) == foreign
    writes.passed(at=len(events))
    assert len(writes) == 0


def test_a_failed_write_leaves_nothing_behind() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    assert writes.is_own(W1, "5")
    assert writes.end(W1, None) == ["5"]
    assert len(writes) == 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30)), max_size=20), st.integers(0, 40))
def test_a_key_waits_for_the_newest_version_that_it_wrote(required: list[tuple[str, int]], at: int) -> None:
    barriers = Barriers()
    newest: dict[Key, int] = {}
    for name, version in required:
        key = Key("", name)
        barriers.require(key, version)
        newest[key] = max(version, newest.get(key, 0))
    assert {key for key in newest if barriers.blocks(key, at=at)} == {key for key in newest if newest[key] > at}
    assert sorted(barriers.met(at=at)) == sorted(key for key in newest if newest[key] <= at)
    assert barriers.met(at=at) == []


def thing(*, uid: str = "u", **content: object) -> bytes:
    metadata = {"name": "w1", "namespace": "default", "uid": uid, "resourceVersion": "1"}
    return json.dumps({"metadata": {**metadata, **content.pop("metadata", {})}, **content}).encode()  # type: ignore[dict-item]


def test_what_counts_as_a_change_is_content_labels_annotations_finalizers_owners_and_deletion() -> None:
    base = handled_state(decode_item(thing(data={"a": "1"})), with_status=False)
    same = (
        thing(data={"a": "1"}, status={"seen": True}),
        thing(data={"a": "1"}, metadata={"resourceVersion": "99", "managedFields": [{"manager": "x"}]}),
        thing(data={"a": "1"}, apiVersion="v1", kind="ConfigMap"),
    )
    other = (
        thing(data={"a": "2"}),
        thing(data={"a": "1"}, uid="another"),
        thing(data={"a": "1"}, metadata={"labels": {"x": "y"}}),
        thing(data={"a": "1"}, metadata={"annotations": {"x": "y"}}),
        thing(data={"a": "1"}, metadata={"finalizers": ["x/y"]}),
        thing(data={"a": "1"}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        thing(data={"a": "1"}, metadata={"ownerReferences": [{"kind": "K", "name": "n", "uid": "u"}]}),
    )
    assert all(handled_state(decode_item(raw), with_status=False) == base for raw in same)
    assert all(handled_state(decode_item(raw), with_status=False) != base for raw in other)


def test_with_a_generation_the_content_is_not_looked_at_and_status_only_on_request() -> None:
    def state(size: int, seen: bool, *, with_status: bool) -> object:
        raw = thing(metadata={"generation": 3}, spec={"size": size}, status={"seen": seen})
        return handled_state(decode_item(raw), with_status=with_status)

    assert state(1, True, with_status=False) == state(2, False, with_status=False)
    assert state(1, True, with_status=True) != state(1, False, with_status=True)


def test_a_tombstone_keeps_its_time_and_goes_when_its_delete_is_settled() -> None:
    ledger = Ledger()
    old, new = decode_item(thing(uid="old")), decode_item(thing(uid="new"))
    ledger.add_tombstone(old.key, old, now=1.0)
    ledger.add_tombstone(new.key, new, now=2.0)
    ledger.add_tombstone(old.key, old, now=3.0)
    assert [(stone.item.meta.uid, stone.since) for stone in ledger.tombstones(W1)] == [("old", 1.0), ("new", 2.0)]
    for stone in ledger.tombstones(W1):
        ledger.remove_tombstone(W1, stone)
    assert ledger.tombstones(W1) == ()


DEPLOYMENT: Resource = {
    "metadata": {
        "name": "web",
        "labels": {"ours": "1", "theirs": "2"},
        "finalizers": ["a/ours", "b/theirs"],
        "managedFields": [
            {"manager": "other", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "us", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {
                "manager": "us",
                "operation": "Apply",
                "subresource": "status",
                "fieldsV1": {
                    "f:status": {
                        "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:type": {}, "f:status": {}}},
                    }
                },
            },
            {
                "manager": "us",
                "operation": "Apply",
                "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:ours": {}}, "f:finalizers": {'v:"a/ours"': {}}},
                    "f:spec": {
                        "f:paused": {},
                        "f:selector": {},
                        "f:template": {
                            "f:spec": {
                                "f:containers": {
                                    'k:{"name":"web"}': {
                                        ".": {},
                                        "f:name": {},
                                        "f:image": {},
                                        "f:ports": {
                                            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                                        },
                                    }
                                }
                            }
                        },
                    },
                },
            },
        ],
    },
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "spec": {
                "containers": [
                    {"name": "sidecar", "image": "theirs"},
                    {
                        "name": "web",
                        "image": "ours",
                        "pullPolicy": "Always",
                        "ports": [
                            {"containerPort": 80, "protocol": "UDP"},
                            {"containerPort": 80, "protocol": "TCP"},
                        ],
                    },
                ]
            }
        },
    },
    "status": {"conditions": [{"type": "Other", "status": "True"}, {"type": "Ready", "status": "True", "reason": "x"}]},
}


def test_what_we_own_of_an_object_is_what_our_own_applies_named() -> None:
    fields = owned_fields(DEPLOYMENT, "us")
    assert fields is not None
    assert project(DEPLOYMENT, fields) == {
        "metadata": {"labels": {"ours": "1"}, "finalizers": ["a/ours"]},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "spec": {"containers": [{"name": "web", "image": "ours", "ports": [{"containerPort": 80}]}]},
            },
        },
    }
    status = owned_fields(DEPLOYMENT, "us", subresource="status")
    assert status is not None
    assert project(DEPLOYMENT, status) == {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert owned_fields(DEPLOYMENT, "nobody") is None
