"""Streams of replicas that share: each receives its own part, with and without the gate of the API server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bonny.resource import Resource
from bonny.sharding.assignment import bucket_of
from bonny.sharding.selection import BUCKET, VALUES, by_label, by_range
from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.processes import OperatorProcess
from tests.support.sharing import OBJECTS, WITHIN_SECONDS, Replicas, command, settings

GATE: Final = "--feature-gates=ShardedListAndWatch=true"


@pytest.fixture(scope="module")
def gated() -> Iterator[Sandbox]:
    with Sandbox(apiserver_flags=[GATE]) as sandbox:
        yield sandbox


def replicas(name: str, sandbox: Sandbox, start_operator: Start, folder: Path) -> Replicas:
    journal = folder / "journal"
    journal.touch()

    def start(pod: str, **more: str) -> OperatorProcess:
        environment = {**settings(name, pod, journal), "TEST_TIMING": "4/2.5/0.5", **more}
        return start_operator(command(), kubeconfig=sandbox.kubeconfig, **environment)

    return Replicas(name, sandbox, start, journal)


def foreign(process: OperatorProcess) -> dict[str, float]:
    """The objects of other replicas that the streams brought, by their role."""
    text = process.probe("/metrics")[1]
    lines = re.findall(r'bonny_foreign_objects_total\{resource="\S+",role="(\w+)"\} (\S+)', text)
    return {role: float(count) for role, count in lines}


class Rounds:
    """Gives all objects new content, again and again."""

    def __init__(self, shared: Replicas) -> None:
        self._shared, self._number = shared, 0

    def until_narrow(self, running: dict[str, OperatorProcess], *, gate: bool) -> dict[str, dict[str, float]]:
        """Return the objects of other replicas of the first round in which no child was among them, and with the gate
        no handled object: children are selected a moment earlier."""

        def narrow() -> dict[str, dict[str, float]] | None:
            before = {pod: foreign(process) for pod, process in running.items()}
            self._number += 1
            self._shared.apply(str(self._number))
            self._shared.wait_handled(str(self._number))
            after = {pod: foreign(process) for pod, process in running.items()}
            counts = {pod: {role: after[pod][role] - before[pod][role] for role in after[pod]} for pod in running}
            foreign_ones = [
                each[role] for each in counts.values() for role in ("child", *(["handled"] if gate else []))
            ]
            return counts if not any(foreign_ones) else None

        return Sandbox.eventually(narrow, within_seconds=WITHIN_SECONDS) or {}


def children(sandbox: Sandbox, name: str) -> list[Resource]:
    items = sandbox.items("v1", "ConfigMap", namespace="default")
    return [each for each in items if re.fullmatch(f"{name}-\\d+-child", each["metadata"]["name"])]


def uids(sandbox: Sandbox, *, buckets: set[int], role: str) -> set[str]:
    """The UIDs that the API server lists for these of 16 buckets."""
    selected = by_label(buckets, of=16) if role == "child" else by_range(buckets, of=16)
    query = "&".join(f"{name}={text.replace(' ', '%20').replace('|', '%7C')}" for name, text in selected.items())
    answer = sandbox.request("GET", f"/api/v1/namespaces/default/configmaps?{query}")
    assert answer.status == 200, answer
    return {each["metadata"]["uid"] for each in answer.body["items"]}


@pytest.mark.parametrize("gate", [False, True], ids=["gate off", "gate on"])
def test_each_replica_receives_its_own_children_and_with_the_gate_its_own_objects(
    gate: bool, sandbox: Sandbox, gated: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    chosen = gated if gate else sandbox
    shared = replicas("streamed", chosen, start_operator, tmp_path)
    running = {pod: shared.start(pod) for pod in ("a", "b")}
    shared.wait_even("a", "b")
    rounds = Rounds(shared)
    counts = rounds.until_narrow(running, gate=gate)
    for child in children(chosen, "streamed"):
        labels = child["metadata"]["labels"]
        assert labels[BUCKET] == str(bucket_of(labels["bonny.dev/owner-uid"], VALUES))
    handled = sum(each["handled"] for each in counts.values())
    assert (handled == 0.0) if gate else (handled >= OBJECTS), counts

    # The watch of a replica that gives buckets back ends, and continues with what it keeps.
    assert running.pop("b").stop()[0] == 0
    shared.wait_even("a")
    running["c"] = shared.start("c").wait_ready()
    shared.wait_even("a", "c")
    counts = rounds.until_narrow(running, gate=gate)
    assert gate == (counts["a"]["handled"] == 0.0), counts
    lists = [line for process in running.values() for line in process.lines("watch failed")]
    assert lists == [], "a watch that continues does not fail"
    assert shared.overlaps() == []


@pytest.mark.parametrize("gate", [False, True], ids=["gate off", "gate on"])
def test_the_selections_of_all_buckets_cover_each_object_once(gate: bool, sandbox: Sandbox, gated: Sandbox) -> None:
    chosen = gated if gate else sandbox
    made = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "default", "name": f"covered-{number}", "labels": {BUCKET: str(number)}},
        }
        for number in range(VALUES)
    ]
    chosen.apply(made)
    ours = {
        each["metadata"]["uid"]: each["metadata"]["labels"][BUCKET]
        for each in chosen.items("v1", "ConfigMap", namespace="default")
        if each["metadata"]["name"].startswith("covered-")
    }
    parts = [{0, 1, 2, 7}, {3, 4, 5, 6}, {8, 10, 12, 14}, {9, 11, 13, 15}]
    labelled = [uids(chosen, buckets=part, role="child") & ours.keys() for part in parts]
    for part, found in zip(parts, labelled, strict=True):
        assert found == {uid for uid, label in ours.items() if int(label) // 4 in part}
    ranged = [uids(chosen, buckets=part, role="handled") & ours.keys() for part in parts]
    for part, found in zip(parts, ranged, strict=True):
        assert found == ({uid for uid in ours if bucket_of(uid, 16) in part} if gate else ours.keys())
    assert uids(chosen, buckets=set(), role="child") & ours.keys() == set()
    assert uids(chosen, buckets=set(range(16)), role="handled") >= ours.keys()


def test_children_of_an_operator_that_did_not_share_get_the_label_before_anything_is_pruned(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path
) -> None:
    shared = replicas("labelled", sandbox, start_operator, tmp_path)
    shared.apply("1")
    single = shared.start("old", TEST_BUCKETS="0").wait_ready()
    shared.wait_handled("1")
    first = children(sandbox, "labelled")[0]
    labels = first["metadata"]["labels"]
    assert BUCKET not in labels
    # A child that no handler registers any more.
    extra: Resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": labels}}
    extra["metadata"] |= {"name": "labelled-dropped", "ownerReferences": first["metadata"]["ownerReferences"]}
    path = "/api/v1/namespaces/default/configmaps/labelled-dropped?fieldManager=labelled/Shared"
    answer = sandbox.request("PATCH", path, extra, content_type="application/apply-patch+yaml")
    assert answer.status == 201, answer
    assert single.stop()[0] == 0

    for pod in ("a", "b"):
        shared.start(pod)
    shared.wait_even("a", "b")
    Sandbox.eventually(
        lambda: all(BUCKET in each["metadata"]["labels"] for each in children(sandbox, "labelled")),
        within_seconds=WITHIN_SECONDS,
    )
    Sandbox.eventually(
        lambda: sandbox.get("v1", "ConfigMap", "labelled-dropped") is None, within_seconds=WITHIN_SECONDS
    )
    assert len(children(sandbox, "labelled")) == OBJECTS
    assert shared.overlaps() == []
