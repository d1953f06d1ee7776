"""The answers of `invoke why`, on plain values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Operator, Owned, Scope
from bonny.deploy import Deploy
from bonny.resource import Resource
from bonny_dev.why.answers import Answer, State, answers, cause_of, observed_generation, paths, verdict
from bonny_dev.why.facts import Child, Facts, OperatorFacts, flat

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
EARLIER = "2026-01-01T11:59:30Z"
LAMP = Kind("example.com/v1", "Lamp", plural="lamps", scope=Scope.NAMESPACED)


class LampController(Controller[Any]):
    resource = LAMP
    owns = (Owned("v1", "ConfigMap"), Owned("v1", "Pod"))

    async def reconcile(self, axn: Axn[Any]) -> None:
        """Does nothing."""


def operator(**deploy: Any) -> Operator:
    return Operator(name="lamps", group="example.com", controllers=[LampController], deploy=Deploy(**deploy))


def lease(renewed: str, holder: str = "pod-a_1") -> Resource:
    spec = {"holderIdentity": holder, "renewTime": renewed, "acquireTime": EARLIER, "leaseDurationSeconds": 15}
    return {"kind": "Lease", "metadata": {"name": "lamps"}, "spec": spec}


def lamp(*, status: Resource | None = None, **metadata: Any) -> Resource:
    base = {"name": "desk", "namespace": "default", "uid": "u", "generation": 2, "creationTimestamp": EARLIER}
    return {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": base | metadata, "status": status or {}}


def condition(type_: str, status: str, reason: str = "", message: str = "", **more: Any) -> Resource:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": EARLIER,
        **more,
    }


def answered(live: Resource | None = None, *, of: dict[str, Any] | None = None, **more: Any) -> dict[str, Answer]:
    about = OperatorFacts(**{"operator": operator(), "namespace": "lamps", **(of or {})})
    given = answers(Facts(now=NOW, kind=LAMP, controller=LampController, of=about, resource=live, **more))
    return {each.question: each for each in given} | {"": verdict(given)}


@pytest.mark.parametrize(
    ("live", "state", "text"),
    [
        (lease("2026-01-01T11:59:50Z"), State.GOOD, f"pod-a_1 leads since {EARLIER}, and renewed its Lease 10 s ago"),
        (
            lease("2026-01-01T09:00:00Z"),
            State.BAD,
            "no replica leads, the last one renewed its Lease 3 h ago: nothing is reconciled",
        ),
        (lease("2026-01-01T11:59:50Z", holder=""), State.BAD, None),
        ({"kind": "Lease", "metadata": {}, "spec": {}}, State.BAD, "no replica leads: nothing is reconciled"),
        (None, State.UNKNOWN, "there is no Lease lamps/lamps: it does not run there, or never led"),
    ],
)
def test_a_leader_is_alive_while_its_lease_lasts(live: Resource | None, state: State, text: str | None) -> None:
    given = answered(lamp(), of={"lease": live})["operator"]
    assert given.state is state
    assert text is None or given.text == text


def test_pods_of_an_operator_that_end_again_and_again() -> None:
    crashed = {"name": "operator", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    crashed["lastState"] = {"terminated": {"reason": "OOMKilled"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lamps-1", "namespace": "lamps"}}
    pod["status"] = {"phase": "Running", "containerStatuses": [crashed]}
    given = answered(lamp(), of={"operator": operator(leader_election=False), "pods": (pod,)})["operator"]
    assert given == Answer(
        "operator",
        State.BAD,
        "without leader election; 1 pods in lamps",
        ("Pod lamps/lamps-1: container operator is waiting, CrashLoopBackOff, it ended before with OOMKilled",),
    )


def test_a_spec_that_the_operator_has_not_handled_yet() -> None:
    given = answered(lamp(status={"observedGeneration": 1}))
    assert given["accepted"].text == "generation 2 is stored, the operator has handled generation 1"
    assert given["accepted"].state is State.WAITING
    assert observed_generation(lamp(status={"conditions": [condition("Ready", "True", observedGeneration=2)]})) == 2
    assert observed_generation(lamp()) is None


@pytest.mark.parametrize(
    ("reason", "turn", "error", "whole"),
    [
        ("Waiting", State.WAITING, State.GOOD, "turn"),
        ("Retry", State.WAITING, State.GOOD, "turn"),
        ("Terminal", State.BAD, State.BAD, "error"),
        ("HandlerFailed", State.WAITING, State.BAD, "error"),
    ],
)
def test_a_failed_reconcile(reason: str, turn: State, error: State, whole: str) -> None:
    given = answered(lamp(status={"conditions": [condition("Reconciled", "False", reason, "no bulb")]}))
    assert (given["turn"].state, given["error"].state, given[""].question) == (turn, error, whole)
    assert given["conditions"].detail == (f"Reconciled=False since {EARLIER}  {reason}: no bulb",)


def test_the_deepest_child_that_is_not_ready() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
    pod["status"] = {"phase": "Pending"}
    replica_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r", "namespace": "default"}}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    children = (Child(replica_set, (Child(pod),)), Child(config_map))
    given = answered(lamp(), children=children)["children"]
    assert given.text == "2 of 3 are not ready, the deepest is Pod default/p: its phase is Pending"
    assert given.detail[1:] == ("  Pod default/p: its phase is Pending", "ConfigMap default/c: ready")
    assert [depth for depth, _ in flat(children)] == [0, 1, 0]


def test_a_long_tree_shows_all_that_is_not_ready_and_some_of_the_rest() -> None:
    many = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n}"}} for n in range(40)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Failed"}}
    lines = answered(lamp(), children=tuple(map(Child, [*many, pod])))["children"].detail
    assert (lines[0], lines[-1]) == ("Pod p: its phase is Failed", "and 30 more that are ready")
    assert len(lines) == 12


@pytest.mark.parametrize(
    ("metadata", "status", "cause"),
    [
        (
            {"deletionTimestamp": EARLIER, "finalizers": ["a/b"]},
            {},
            f"is being deleted since {EARLIER}, which waits for a/b",
        ),
        (
            {},
            {"containerStatuses": [{"name": "web", "state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}]},
            "container web is waiting, ErrImagePull: no",
        ),
        (
            {},
            {"conditions": [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")]},
            "PodScheduled is False, Unschedulable: 0/3 nodes",
        ),
        (
            {},
            {"conditions": [condition("Failed", "True", "DeadlineExceeded", "late")]},
            "Failed, DeadlineExceeded: late",
        ),
        ({}, {}, "it has no status yet: its controller has not handled it"),
        ({}, {"replicas": 1}, "its status has no reason"),
    ],
)
def test_why_a_child_is_not_ready(metadata: Resource, status: Resource, cause: str) -> None:
    assert (
        cause_of({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **metadata}, "status": status}) == cause
    )


def test_who_removes_each_finalizer() -> None:
    entry = {
        "manager": "vault",
        "operation": "Update",
        "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"v.io/k"': {}}}},
    }
    names = ["v.io/k", "foregroundDeletion", "x.io/y"]
    live = lamp(finalizers=names, deletionTimestamp=EARLIER, managedFields=[entry])
    given = answered(live)
    assert (given[""].question, given["finalizers"].state) == ("finalizers", State.BAD)
    assert given["finalizers"].detail == (
        "v.io/k: not of this operator; vault set it, and has to remove it",
        "foregroundDeletion: removed by the garbage collector, when the children that block it are gone",
        "x.io/y: not of this operator; its writer has to remove it",
    )


def test_paths_do_not_quote_keys_of_list_items() -> None:
    fields: Resource = {"f:spec": {"f:ports": {".": {}, 'k:{"name":"secret"}': {"f:port": {}, ".": {}}}, "f:size": {}}}
    assert [*paths(fields)] == ["spec.ports[].port", "spec.size"]


def test_events_are_shown_newest_first_with_their_count() -> None:
    def event(at: str, reason: str, **more: Any) -> Resource:
        return {"type": "Warning", "metadata": {}, "eventTime": at, "reason": reason, "action": "Reconcile", **more}

    series = {"count": 7, "lastObservedTime": "2026-01-01T11:59:58Z"}
    events = (event("2026-01-01T11:00:00Z", "Old"), event(EARLIER, "New", series=series, note="no\nbulb"))
    given = answered(lamp(), events=events)
    assert given["runs"].detail[0] == "2 s ago New/Reconcile (7 times), : no\\nbulb"
    assert given["runs"].detail[1].startswith("60 min ago Old/Reconcile")
    assert given[""].text.startswith("reported, and maybe over since: 2 s ago New/Reconcile (7 times)")


def test_without_an_object_only_the_operator_is_judged() -> None:
    given = answered(None, names=("default/table",))
    assert [*given] == ["accepted", "operator", "permissions", ""]
    assert given["accepted"].text.startswith("there is no such object; there are default/table; ")
