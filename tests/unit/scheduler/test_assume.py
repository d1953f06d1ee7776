"""Which pods count on which nodes."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from bonny.filters import fits, free, requests, usage
from bonny.filters.demand import demand
from bonny.filters.fits import fits_ports, fits_resources
from bonny.filters.room import Ledger, Usage
from bonny.scheduler.assume import AssumeCache
from bonny.scheduler.views import PodView
from tests.support.effort import examples
from tests.support.scheduling import item, node, pod, pod_view

NODES = ("n1", "n2")


def cache(**fields: Any) -> AssumeCache:
    made = AssumeCache()
    made.shapes.append(fits.shape)
    for name in NODES:
        made.see_node(name, item(node(name, **fields)))
    return made


def shown(name: str, *, version: int = 1, **fields: Any) -> PodView:
    return PodView(item(pod(name, **fields), version=version))


def counted(cache: AssumeCache) -> set[str]:
    """The nodes on which pods count. Pods and usage of other nodes are kept only while they exist."""
    assert all(pods or name in cache.nodes for name, pods in cache.pods.items())
    assert cache.derived(Ledger).usage.keys() <= cache.pods.keys()
    return {name for name, pods in cache.pods.items() if pods}


def free_cpu(known: AssumeCache) -> list[int]:
    return [free(known.nodes[name])["cpu"] for name in NODES]


def test_a_chosen_node_counts_at_once() -> None:
    known = cache()

    known.assume(pod_view(cpu="3"), "n1")

    assert free_cpu(known) == [1000, 4000]
    assert not fits(pod_view("p2", cpu="2"), known.nodes["n1"])


def test_a_failed_binding_gives_the_room_back() -> None:
    known = cache()
    known.assume(pod_view(cpu="3"), "n1")

    known.give_back("uid-p1")
    known.give_back("uid-p1")

    assert free_cpu(known) == [4000, 4000]
    assert known._placed == {}


def test_what_is_seen_bound_is_not_given_back() -> None:
    known = cache()
    known.assume(pod_view(cpu="3"), "n1")
    known.see_pod(shown("p1", cpu="3", node="n1"))

    known.give_back("uid-p1")

    assert free_cpu(known) == [1000, 4000]


def test_a_pod_counts_where_the_stream_shows_it_whatever_was_assumed() -> None:
    known = cache()
    known.assume(pod_view(cpu="3"), "n1")

    known.see_pod(shown("p1", cpu="3", node="n2"))

    assert free_cpu(known) == [4000, 1000]


def test_an_assumed_pod_counts_while_the_stream_still_shows_it_without_a_node() -> None:
    known = cache()
    known.assume(pod_view(cpu="3"), "n1")

    known.see_pod(shown("p1", cpu="3", version=2))

    assert free_cpu(known) == [1000, 4000]


def test_a_finished_pod_takes_no_room_and_a_deleted_one_neither() -> None:
    known = cache()
    for name in ("p1", "p2"):
        known.see_pod(shown(name, cpu="1", node="n1", phase="Running"))

    known.see_pod(shown("p1", cpu="1", node="n1", phase="Succeeded"))
    known.pod_gone("uid-p2")

    assert free_cpu(known) == [4000, 4000]
    assert known._placed == {}


def test_a_pod_under_deletion_takes_room_until_it_is_gone() -> None:
    known = cache()
    dying = pod("p1", cpu="1", node="n1", phase="Running")
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    known.see_pod(PodView(item(dying)))

    assert free_cpu(known) == [3000, 4000]


def test_a_resized_pod_takes_what_it_has_now() -> None:
    known = cache()
    known.see_pod(shown("p1", cpu="1", node="n1"))

    known.see_pod(shown("p1", cpu="2", node="n1", version=2))

    assert free_cpu(known) == [2000, 4000]


def test_pods_of_a_node_that_is_gone_are_remembered_until_they_are_gone_too() -> None:
    known = cache()
    known.see_pod(shown("p1", cpu="1", node="n1"))
    known.see_node("n1", None)

    known.see_node("n1", item(node("n1"), version=2))
    assert free_cpu(known) == [3000, 4000]
    known.pod_gone("uid-p1")

    assert free_cpu(known) == [4000, 4000]
    assert counted(known) == set()


def test_the_newest_version_of_a_pod_is_kept_and_no_other() -> None:
    """Regression: the first bound version stayed in memory beside that of the store, several kilobytes a pod."""
    known = cache()
    known.see_pod(shown("p1", cpu="1", node="n1"))
    newest = shown("p1", cpu="1", node="n1", version=2)

    known.see_pod(newest)

    assert known.nodes["n1"].pods == {"uid-p1": newest}
    assert known._placed["uid-p1"][0] is newest


class Cluster(RuleBasedStateMachine):
    """Streams and schedulers do what they like; only what fits is assumed."""

    pods = Bundle("pods")

    def __init__(self) -> None:
        super().__init__()
        self.cache = cache(cpu="4", memory="8Gi", pods="3")
        self.ledger = self.cache.derived(Ledger)
        self.expected: dict[str, tuple[str, PodView]] = {}
        """What counts, by a second bookkeeping that is as simple as can be."""

        self.bound: set[str] = set()
        self.gone: set[str] = set()
        self.number = 0
        self.foreign = False
        """Whether somebody else bound a pod without asking us."""

    @rule(
        target=pods,
        cpu=st.sampled_from(["", "500m", "1", "2", "5"]),
        port=st.sampled_from([None, None, 80]),
        repels=st.booleans(),
    )
    def create(self, cpu: str, port: int | None, repels: bool) -> PodView:
        self.number += 1
        fields: dict[str, Any] = {}
        if port:
            listed = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
            requests = {"requests": {"cpu": cpu}} if cpu else {}
            fields["containers"] = [{"name": "main", "resources": requests, "ports": listed}]
        if repels:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "y"}}}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            fields["affinity"] = {"podAntiAffinity": required}
        made = pod(f"p{self.number}", cpu="" if port else cpu, **fields)
        view = PodView(item(made))
        self.cache.see_pod(view)
        return view

    @rule(pod=pods, name=st.sampled_from(NODES))
    def choose(self, pod: PodView, name: str) -> None:
        if pod.uid in self.bound | self.gone or pod.uid in self.expected:
            return
        if name in self.cache.nodes and fits_resources(pod, at := self.cache.nodes[name]) and fits_ports(pod, at):
            self.cache.assume(pod, name)
            self.expected[pod.uid] = (name, pod)

    @rule(pod=pods)
    def fail(self, pod: PodView) -> None:
        self.cache.give_back(pod.uid)
        if pod.uid not in self.bound:
            self.expected.pop(pod.uid, None)

    @rule(pod=pods)
    def confirm(self, pod: PodView) -> None:
        if pod.uid in self.expected and pod.uid not in self.gone:
            name, _ = self.expected[pod.uid]
            self.show_bound(pod, name)

    @rule(pod=pods, name=st.sampled_from(NODES))
    def others_are_faster(self, pod: PodView, name: str) -> None:
        if pod.uid not in self.bound | self.gone:
            self.foreign = True
            self.show_bound(pod, name)

    def show_bound(self, pod: PodView, name: str, phase: str = "Running") -> None:
        resource = {**pod.resource, "spec": {**pod["spec"], "nodeName": name}, "status": {"phase": phase}}
        self.cache.see_pod(PodView(item(resource, version=2)))
        self.bound.add(pod.uid)
        self.expected[pod.uid] = (name, pod)

    @rule(pod=pods)
    def finish(self, pod: PodView) -> None:
        if pod.uid in self.bound - self.gone:
            name, _ = self.expected.get(pod.uid, ("n1", pod))
            self.show_bound(pod, name, phase="Failed")
            del self.expected[pod.uid]

    @rule(pod=pods)
    def delete(self, pod: PodView) -> None:
        self.cache.pod_gone(pod.uid)
        self.expected.pop(pod.uid, None)
        self.gone.add(pod.uid)

    @rule(name=st.sampled_from(NODES), there=st.booleans())
    def change_node(self, name: str, there: bool) -> None:
        self.cache.see_node(name, item(node(name, cpu="4", memory="8Gi", pods="3")) if there else None)

    @invariant()
    def counts_what_is_bound_or_assumed_and_nothing_else(self) -> None:
        assert len(self.cache._placed) == len(self.expected)
        for name in NODES:
            here = [view for where, view in self.expected.values() if where == name]
            taken = self.ledger.usage.get(name, Usage())
            assert name not in self.cache.nodes or usage(self.cache.nodes[name]) is self.ledger.usage[name]
            assert set(self.cache.pods.get(name, ())) == {view.uid for view in here}
            assert taken.requested["cpu"] == sum(requests(view).get("cpu", 0) for view in here)
            assert taken.ports.total() == sum(len(demand(view).ports) for view in here)
            assert taken.scored == (
                sum(demand(view).scored[0] for view in here),
                sum(demand(view).scored[1] for view in here),
            )

    @invariant()
    def never_overcommits_by_what_it_has_seen(self) -> None:
        if self.foreign:
            return
        for known in self.cache.nodes.values():
            assert all(amount >= 0 for amount in free(known).values())
            assert all(count == 1 for count in usage(known).ports.values())

    def teardown(self) -> None:
        for uid in list(self.expected):
            self.cache.pod_gone(uid)
        assert (self.cache._placed, self.ledger._repelling, counted(self.cache)) == ({}, {}, set())


TestCluster = Cluster.TestCase
TestCluster.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
