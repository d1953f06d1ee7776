"""Whole operators as replicas: one acts, the others stand by with warm caches; I4, L1, L2 and the rolling restart."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Drop, Fault, FaultProxy, Hold, ProxiedRequest, is_write
from tests.conftest import Start
from tests.faults.scene import SLOW, widget
from tests.support.processes import OperatorProcess, handwritten

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
# As short as two busy cores allow; the longest of it is what a failover takes.
SCALED: Final = "4 2.6 0.4"
DURATION: Final = 4.0
GRACE: Final = 4.0


def of_the_lease(request: ProxiedRequest) -> bool:
    return request.path.startswith(LEASE)


def work(request: ProxiedRequest) -> bool:
    return is_write(request) and not of_the_lease(request)


def applies_a_child(request: ProxiedRequest) -> bool:
    return request.method == "PATCH" and "/configmaps/" in request.path


class Replica:
    """One process behind a proxy of its own, which logs what it wrote."""

    def __init__(self, process: OperatorProcess, proxy: FaultProxy) -> None:
        self.operator = process
        self.proxy = proxy

    @property
    def role(self) -> str:
        """What /readyz says of it."""
        return next(
            line for line in self.operator.probe("/readyz")[1].splitlines() if line in ("leading", "standing by")
        )

    @property
    def writes(self) -> list[float]:
        return [request.time for request in list(self.proxy.requests) if work(request)]


class Replicas:
    """Those of one operator."""

    def __init__(self, sandbox: Sandbox, start: Start, stack: ExitStack) -> None:
        self.sandbox = sandbox
        self._start = start
        self._stack = stack
        self._named = 0

    def join(self, *, lease: str = SCALED) -> Replica:
        """One more; returns when it is ready."""
        proxy = self._stack.enter_context(FaultProxy(self.sandbox))
        settings = {
            "BONNY_LEADER_ELECTION": "true",
            "BONNY_POD_NAMESPACE": "default",
            "BONNY_WATCH_NAMESPACE": "__ALL__",
            "TEST_LEASE_SECONDS": lease,
            "BONNY_GRACE_SECONDS": str(GRACE),
        }
        process = self._start(handwritten(), kubeconfig=proxy.kubeconfig, **settings)
        # Who lives longer than its proxy connects anew while that ends, and its last connection is nobody's.
        self._stack.callback(process.process.kill)
        return Replica(process.wait_ready(), proxy)

    def pair(self, *, lease: str = SCALED) -> tuple[Replica, Replica]:
        """A leader and a standby, both ready."""
        leader = self.join(lease=lease)
        self.sandbox.eventually(lambda: leader.role == "leading")
        return leader, self.join(lease=lease)

    def ask(self) -> str:
        """Apply one more Widget; returns its name."""
        self._named += 1
        name = f"asked-{self._named}"
        self.sandbox.apply(widget(name, size=self._named))
        return name

    def done(self, name: str) -> Resource | None:
        """The child of a Widget, once it is there."""
        return self.sandbox.get("v1", "ConfigMap", name)

    def until_done(self, name: str, *, within_seconds: float = 10.0) -> float:
        """Return when it is done; the moment."""
        self.sandbox.eventually(lambda: self.done(name), within_seconds=within_seconds)
        return time.monotonic()


@pytest.fixture
def replicas(sandbox: Sandbox, start_operator: Start, clean: None) -> Iterator[Replicas]:
    sandbox.request("DELETE", f"{LEASE}/handwritten")
    with ExitStack() as stack:
        yield Replicas(sandbox, start_operator, stack)


def test_a_standby_is_ready_and_writes_nothing(replicas: Replicas) -> None:
    leader, standby = replicas.pair()
    for _ in range(3):
        replicas.until_done(replicas.ask())

    assert (standby.role, standby.writes) == ("standing by", [])
    assert leader.writes


@pytest.mark.parametrize(
    ("lease", "within"), [(SCALED, DURATION + 3.0), pytest.param("15 10 2", 18.0, marks=SLOW, id="defaults")]
)
def test_l_after_kill_9_the_standby_takes_over_in_time_and_nothing_is_lost(
    replicas: Replicas, lease: str, within: float
) -> None:
    leader, standby = replicas.pair(lease=lease)
    replicas.until_done(replicas.ask())
    leader.operator.process.kill()
    killed = time.monotonic()
    names = [replicas.ask() for _ in range(3)]

    for name in names:
        taken = replicas.until_done(name, within_seconds=within)

    assert taken - killed < within
    assert standby.role == "leading"
    assert max(leader.writes) < min(standby.writes)


@SLOW
def test_l_of_ten_leaders_that_are_killed_one_after_the_other_each_has_a_successor_in_time(replicas: Replicas) -> None:
    leader, standby = replicas.pair()
    took = []
    for _ in range(10):
        next_standby = replicas.join()
        replicas.until_done(replicas.ask())
        leader.operator.process.kill()
        killed = time.monotonic()
        took.append(replicas.until_done(replicas.ask(), within_seconds=DURATION + 3.0) - killed)

        # Either of those who stood by may be faster.
        successor, other = (standby, next_standby) if standby.writes else (next_standby, standby)
        assert (successor.role, other.role) == ("leading", "standing by")
        assert max(leader.writes) < min(successor.writes)
        assert other.writes == []
        leader, standby = successor, other

    assert len(took) == 10
    print(
        "seconds from kill -9 to the first object done by the next:", " ".join(f"{each:.1f}" for each in sorted(took))
    )


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "held"])
def test_i4_sigterm_while_a_write_of_a_reconcile_is_under_way(replicas: Replicas, answered: bool) -> None:
    leader = replicas.join()
    released = threading.Event()
    held = leader.proxy.add(Fault(Hold(released), on=applies_a_child))
    name = replicas.ask()
    replicas.sandbox.eventually(lambda: held.hits == 1)
    began = time.monotonic()
    leader.operator.process.terminate()
    replicas.sandbox.eventually(lambda: bool(leader.operator.lines("stopping")))
    if answered:
        released.set()

    assert leader.operator.process.wait(GRACE + 5.0) == 0
    assert time.monotonic() - began < GRACE + 1.0
    released.set()
    lease = replicas.sandbox.get("coordination.k8s.io/v1", "Lease", "handwritten")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "", "released"
    seen = replicas.sandbox.get("example.com/v1", "Widget", name)
    assert seen is not None
    if answered:
        assert replicas.done(name), "the handling went on to its end"
        assert seen["status"]["observedGeneration"] == seen["metadata"]["generation"]
        assert all(each["status"] == "True" for each in seen["status"]["conditions"])
    else:
        assert "observedGeneration" not in seen.get("status", {}), "what did not succeed is not told as if it had"
    # Whoever follows does what is left.
    replicas.join()
    replicas.until_done(name)


def test_l_after_sigterm_the_standby_takes_over_within_three_seconds(replicas: Replicas) -> None:
    leader, standby = replicas.pair()
    replicas.until_done(replicas.ask())
    began = time.monotonic()
    code, _ = leader.operator.stop()

    taken = replicas.until_done(replicas.ask())

    assert (code, standby.role) == (0, "leading")
    assert taken - began < 3.0
    assert max(leader.writes) < min(standby.writes)


def test_l1_a_leader_that_cannot_renew_stops_work_stands_by_and_leads_again(replicas: Replicas) -> None:
    leader, standby = replicas.pair()
    replicas.until_done(replicas.ask())
    fault = leader.proxy.add(Fault(Drop(), on=of_the_lease, times=None))
    replicas.sandbox.eventually(lambda: standby.role == "leading", within_seconds=DURATION + 4.0)
    replicas.until_done(replicas.ask())

    assert max(leader.writes) < min(standby.writes)
    assert leader.operator.process.poll() is None
    assert leader.operator.probe("/healthz")[0] == 200
    leader.proxy.remove(fault)
    standby.operator.process.kill()
    name = replicas.ask()
    replicas.until_done(name, within_seconds=DURATION + 4.0)
    assert leader.role == "leading"


def test_l2_a_leader_that_stood_still_beyond_its_lease_writes_nothing_more(replicas: Replicas) -> None:
    leader, standby = replicas.pair()
    replicas.until_done(replicas.ask())
    leader.operator.process.send_signal(signal.SIGSTOP)
    name = replicas.ask()
    replicas.until_done(name, within_seconds=DURATION + 4.0)
    before = len(leader.writes)

    leader.operator.process.send_signal(signal.SIGCONT)

    assert leader.operator.process.wait(10) == 3, "the watchdog ends it"
    assert len(leader.writes) == before
    assert standby.role == "leading"


def test_a_rolling_restart_loses_nothing(replicas: Replicas) -> None:
    old = replicas.join()
    names = [replicas.ask() for _ in range(5)]
    for _ in range(2):
        new = replicas.join()
        names += [replicas.ask() for _ in range(5)]
        assert old.operator.stop()[0] == 0
        names += [replicas.ask() for _ in range(5)]
        old = new

    for name in names:
        replicas.until_done(name)


def test_a_standby_does_not_remember_the_ends_of_objects_for_ever_and_the_leader_sees_to_them(
    replicas: Replicas,
) -> None:
    leader, standby = replicas.pair()
    name = replicas.ask()
    replicas.until_done(name)
    replicas.sandbox.delete("example.com/v1", "Widget", name)
    replicas.sandbox.eventually(lambda: f"deleted default/{name}" in leader.operator.text)
    leader.operator.process.kill()
    replicas.sandbox.eventually(lambda: standby.role == "leading", within_seconds=DURATION + 4.0)

    # It went while the other led and is replayed: `delete` runs at least once for each UID.
    replicas.sandbox.eventually(lambda: f"deleted default/{name}" in standby.operator.text)
