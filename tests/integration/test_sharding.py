"""Replicas that share the work, as processes: who handles what, and what becomes of it when they come, go and die."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from bonny_dev.sandbox import Sandbox
from tests.conftest import Start
from tests.support.processes import OperatorProcess
from tests.support.sharing import LEASE, OBJECTS, WITHIN_SECONDS, Replicas, command, lease_writes, settings

QUICK: Final = "4/2.5/0.5"


@pytest.fixture
def replicas(
    sandbox: Sandbox, start_operator: Start, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Replicas]]:
    made: list[Replicas] = []

    def make(name: str, **chosen: str) -> Replicas:
        journal = tmp_path / "journal"
        journal.touch()

        def start(pod: str, **more: str) -> OperatorProcess:
            return start_operator(command(), **{**settings(name, pod, journal), **chosen, **more})

        made.append(Replicas(name, sandbox, start, journal))
        return made[-1]

    yield make
    for each in made:
        for lease in sandbox.items(*LEASE, namespace="default"):
            if lease["metadata"]["name"].startswith(each.name):
                sandbox.delete(*LEASE, lease["metadata"]["name"])
        for item in sandbox.items("v1", "ConfigMap", namespace="default"):
            if item["metadata"]["name"].startswith(f"{each.name}-"):
                sandbox.delete("v1", "ConfigMap", item["metadata"]["name"])


def test_three_replicas_handle_each_object_once_and_share_again_when_one_dies_joins_and_leaves(
    replicas: Callable[..., Replicas],
) -> None:
    shared = replicas("sharing")
    shared.apply("1")
    running = {pod: shared.start(pod) for pod in ("a", "b", "c")}
    shared.wait_even("a", "b", "c")
    shared.wait_handled("1")
    notes = [running[pod].probe("/readyz")[1] for pod in running]
    assert all(re.search(r"^buckets: \d+(, \d+){4,5} of 16$", note, re.MULTILINE) for note in notes), notes

    shared.wait_handled_by_holders(running)  # who gains a bucket handles its objects anew
    since = time.clock_gettime(time.CLOCK_BOOTTIME)
    shared.apply("2")
    shared.wait_handled("2")
    assert set(shared.begun(since=since).values()) == {1}, "each by one replica, once"
    assert len(shared.begun(since=since)) == OBJECTS

    dead = running["a"].process.pid
    running["a"].process.kill()
    shared.wait_even("b", "c")
    running["d"] = shared.start("d").wait_ready()
    shared.wait_even("b", "c", "d")
    assert running["b"].stop()[0] == 0
    shared.wait_even("c", "d")

    shared.apply("3")
    shared.wait_handled("3")
    assert shared.overlaps(dead=(dead,)) == []
    members = [each["metadata"]["name"] for each in shared.sandbox.items(*LEASE, namespace="default")]
    assert sum(name.startswith("sharing-member-") for name in members) == 2, "those that ended are removed"


@pytest.mark.slow
def test_an_old_leader_and_replicas_with_other_buckets_never_act_beside_replicas_that_share(
    replicas: Callable[..., Replicas],
) -> None:
    shared = replicas("switched", TEST_TIMING=QUICK)
    shared.apply("1")
    single = shared.start("old", TEST_BUCKETS="0").wait_ready()
    shared.wait_handled("1")
    new, other = shared.start("new"), shared.start("other", TEST_BUCKETS="32")
    Sandbox.eventually(
        lambda: new.lines("not sharing: the lease is held in another way"), within_seconds=WITHIN_SECONDS
    )
    assert shared.holders() == {}, "an old leader is left alone"

    other.stop()
    assert single.stop()[0] == 0
    shared.wait_even("new")
    shared.apply("2")
    shared.wait_handled("2")

    single, other = shared.start("old", TEST_BUCKETS="0"), shared.start("other", TEST_BUCKETS="32")
    said = partial(other.lines, "not sharing: the lease is held in another way")
    assert Sandbox.eventually(said, within_seconds=WITHIN_SECONDS)[0]["holder"] == "shared-fnv1a64-16"
    single.wait_ready()
    shared.apply("3")
    shared.wait_handled("3")
    assert shared.holders().keys() == {"new"}
    assert not single.lines("leading")
    other.stop()

    assert new.stop()[0] == 0
    Sandbox.eventually(lambda: single.lines("leading"), within_seconds=WITHIN_SECONDS)
    shared.apply("4")
    shared.wait_handled("4")
    assert shared.overlaps() == []


@pytest.mark.slow
def test_a_replica_that_stood_still_writes_nothing_after_its_buckets_were_taken(
    replicas: Callable[..., Replicas],
) -> None:
    shared = replicas("suspended", TEST_TIMING=QUICK, TEST_SECONDS="0.2")
    running = {pod: shared.start(pod) for pod in ("a", "b")}
    shared.wait_even("a", "b")
    shared.apply("1")
    shared.wait_handled("1")
    shared.apply("2")
    running["a"].process.send_signal(signal.SIGSTOP)
    shared.wait_even("b")
    shared.wait_handled("2")
    running["a"].process.send_signal(signal.SIGCONT)
    assert running["a"].process.wait(WITHIN_SECONDS) == 3, "its watchdog ended it"
    shared.apply("3")
    shared.wait_handled("3")
    assert shared.overlaps(dead=(running["a"].process.pid,)) == []


@pytest.mark.slow
def test_the_lease_of_a_bucket_that_is_deleted_or_given_to_another_costs_that_bucket_alone(
    replicas: Callable[..., Replicas],
) -> None:
    shared = replicas("edited", TEST_TIMING=QUICK)
    running = {pod: shared.start(pod) for pod in ("a", "b")}
    shared.wait_even("a", "b")
    before = shared.holders()
    shared.sandbox.delete(*LEASE, "edited-bucket-3")
    Sandbox.eventually(lambda: shared.are_even("a", "b"), within_seconds=WITHIN_SECONDS)
    assert {pod: sorted(held) for pod, held in shared.holders().items()} == {
        pod: sorted(held) for pod, held in before.items()
    }, "its holder makes it again"

    holder = next(pod for pod, held in before.items() if 5 in held)
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/edited-bucket-5"
    patch = {"spec": {"holderIdentity": "nobody"}}
    answer = shared.sandbox.request("PATCH", path, patch, content_type="application/merge-patch+json")
    assert answer.status == 200
    Sandbox.eventually(lambda: running[holder].lines("bucket lost"), within_seconds=WITHIN_SECONDS)
    shared.wait_even("a", "b")
    assert [line["bucket"] for line in running[holder].lines("bucket lost")] == [5]
    shared.apply("1")
    shared.wait_handled("1")
    assert shared.overlaps() == []


@pytest.mark.slow
def test_lease_writes_of_three_replicas_are_few(replicas: Callable[..., Replicas]) -> None:
    shared = replicas("counted")
    for pod in ("a", "b", "c"):
        shared.start(pod)
    shared.wait_even("a", "b", "c")
    began, before = time.monotonic(), lease_writes(shared.sandbox)
    Sandbox.eventually(lambda: time.monotonic() - began >= 20.0, within_seconds=WITHIN_SECONDS)
    assert (lease_writes(shared.sandbox) - before) / (time.monotonic() - began) <= 11.0
