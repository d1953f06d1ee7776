"""Agreement with kube-scheduler: the real one and ours judge the same generated pods on the same API server."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from bonny.core.objects import decode_item
from bonny.filters import fits
from bonny.filters.demand import demand
from bonny.resource import Resource
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.choosing import verdict
from bonny.scheduler.views import PodView
from bonny_dev.sandbox import Sandbox
from tests.support.cases import RUNTIME_CLASS, Case, Generator
from tests.support.reference import NAME, kube_scheduler
from tests.support.schedulers import PODS, add_nodes, remove_all
from tests.support.scheduling import node, pod

# Cases that share a cluster, and how many such clusters; AGREEMENT_CLUSTERS asks for more, AGREEMENT_SEED for others.
TOGETHER = 250
CLUSTERS = int(os.environ.get("AGREEMENT_CLUSTERS", "16"))
SEED = int(os.environ.get("AGREEMENT_SEED", "1"))
JUDGED_SECONDS = 90.0
# As promised (docs/scheduler.md).
AGREEING = 0.999


@pytest.fixture(scope="module")
def judged_by_kube_scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with Sandbox() as own, kube_scheduler(own, tmp_path_factory.mktemp("reference") / "kube-scheduler"):
        own.apply(RUNTIME_CLASS)
        yield own


def create(sandbox: Sandbox, path: str, resources: Iterable[Resource]) -> set[str]:
    """Create them side by side; returns the names of those that the API server takes."""

    def one(resource: Resource) -> tuple[str, bool]:
        answer = sandbox.request("POST", path, resource)
        assert answer.status in (201, 422), answer
        return resource["metadata"]["name"], answer.status == 201

    with ThreadPoolExecutor(4) as pool:
        return {name for name, taken in pool.map(one, resources) if taken}


def pods_of(sandbox: Sandbox) -> dict[str, Resource]:
    return {found["metadata"]["name"]: found for found in sandbox.items("v1", "Pod", namespace="default")}


def told(found: Resource) -> str:
    """What PodScheduled says. Empty: nothing yet."""
    conditions = found["status"].get("conditions", ())
    return next((known.get("message", "") for known in conditions if known["type"] == "PodScheduled"), "")


def settled(sandbox: Sandbox, names: set[str], nodes: int) -> dict[str, Resource] | None:
    """The judged pods, once each has a node, gates, or a verdict that is about all nodes."""
    found = {name: known for name, known in pods_of(sandbox).items() if name in names}
    open_ = [
        name
        for name, known in found.items()
        if not (
            known["spec"].get("nodeName")
            or known["spec"].get("schedulingGates")
            or told(known).startswith(f"0/{nodes} nodes are available")
            or known["spec"].get("resourceClaims")
        )
    ]
    return None if open_ else found


def played(sandbox: Sandbox, cases: Sequence[Case]) -> tuple[list[Resource], dict[str, Resource], dict[str, Resource]]:
    """Let kube-scheduler judge the cases; returns the nodes, the pods that run, and those that were judged."""
    add_nodes(sandbox, [case.node for case in cases])
    # Once it has bound a pod to the node that came last, it has seen all of them as they are.
    add_nodes(sandbox, [node("last", labels={"last": "yes"})])
    create(sandbox, PODS, [pod("canary", scheduler=NAME, nodeSelector={"last": "yes"})])
    sandbox.eventually(lambda: pods_of(sandbox)["canary"]["spec"]["nodeName"], within_seconds=JUDGED_SECONDS)
    running = create(sandbox, PODS, [known for case in cases for known in case.running])
    names = create(sandbox, PODS, [case.judged for case in cases])
    judged = sandbox.eventually(lambda: settled(sandbox, names, len(cases) + 1), within_seconds=JUDGED_SECONDS)
    found = pods_of(sandbox)
    return sandbox.items("v1", "Node"), {name: found[name] for name in [*running, "canary"]}, judged


def as_item(resource: Resource) -> Any:
    return decode_item(msgspec.json.encode(resource))


def without_node(resource: Resource) -> Resource:
    """As the pod was when it was judged."""
    spec = {name: value for name, value in resource["spec"].items() if name != "nodeName"}
    return {**resource, "spec": spec}


def differences(
    nodes: list[Resource], running: dict[str, Resource], judged: dict[str, Resource]
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """What ours says of the same, compared with what kube-scheduler did."""
    cache = AssumeCache()
    for found in nodes:
        cache.see_node(found["metadata"]["name"], as_item(found))
    for found in running.values():
        cache.see_pod(PodView(as_item(found)))
    counts: Counter[str] = Counter()
    different = []
    for name, found in judged.items():
        theirs = found["spec"].get("nodeName") or ("gated" if found["spec"].get("schedulingGates") else told(found))
        view = PodView(as_item(without_node(found)))
        said = {known.name: fits(view, known) for known in cache.nodes.values()}
        right = [known for known, fit in said.items() if fit]
        text = verdict(list(said.values()))
        refusal = demand(view).refusal
        if refusal and not refusal.startswith("pod affinity terms"):
            # A listed difference: whatever kube-scheduler says, here the pod waits.
            agree = not right
            counts["not honoured, waits"] += 1
        elif not view.pending:
            agree = theirs == "gated"
            counts["gated"] += 1
        elif theirs in said:
            agree = right == [theirs]
            counts["bound"] += 1
        else:
            # Behind the verdict kube-scheduler says what preemption came to.
            agree = not right and theirs.startswith(text)
            counts["waits"] += 1
        if not agree:
            different.append({"pod": name, "theirs": theirs, "ours": right or text, "spec": found["spec"]})
    return counts, different


@pytest.mark.slow
def test_our_verdicts_are_those_of_kube_scheduler_word_for_word(judged_by_kube_scheduler: Sandbox) -> None:
    sandbox = judged_by_kube_scheduler
    counts: Counter[str] = Counter()
    different: list[dict[str, Any]] = []
    for number in range(CLUSTERS):
        generator = Generator(SEED * 1000 + number)
        cases = [generator.case(index, scheduler=NAME) for index in range(TOGETHER)]
        more, found = differences(*played(sandbox, cases))
        counts += more
        different += found
        remove_all(sandbox)
    total = counts.total()
    report = json.dumps({"pods": dict(counts), "different": different[:5]}, indent=2)
    print(report)

    assert min(counts["bound"], counts["waits"]) > total / 5, "the cases are one-sided"
    assert len(different) <= (1 - AGREEING) * total, report
    misplaced = [known for known in different if isinstance(known["ours"], list)]
    assert not misplaced, report
