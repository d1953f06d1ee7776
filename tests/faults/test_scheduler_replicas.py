"""Rows B with whole operators: two replicas as processes, of which one schedules (docs/reliability.md)."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

import pytest

from bonny.scheduler import Scheduler
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import (
    CommitThenDrop,
    Drop,
    Fault,
    FaultProxy,
    Hold,
    ProxiedRequest,
    Respond,
    Stall,
    is_list,
    is_watch,
    is_write,
)
from tests.conftest import Start
from tests.faults.scene import compact
from tests.support.processes import OperatorProcess, scheduled
from tests.support.schedulers import NODES, PODS, add_nodes, placed, remove_all
from tests.support.scheduling import node, pod

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
# As short as two busy cores allow.
SCALED: Final = "4 2.6 0.4"
# For what is held on its way: no request may last for longer than the renew deadline.
PATIENT: Final = "60 40 0.4"
SEEN_SECONDS: Final = 60.0
# What is on its way for longer when a leader is told to stop is taken back.
GRACE_SECONDS: Final = 4.0
CROWD: Final = 120
ROOM: Final = 10
# Of the leader's bindings the first are carried out, of some more the answers are lost, and the rest are on their way.
DONE, LOST = 20, 28


def of_the_lease(request: ProxiedRequest) -> bool:
    return request.path.startswith(LEASE)


def of_binding(request: ProxiedRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/binding")


def watch_of_pods(request: ProxiedRequest) -> bool:
    return is_watch(request) and request.path == "/api/v1/pods"


def of_nodes(request: ProxiedRequest) -> bool:
    return request.path == NODES and (is_list(request) or is_watch(request))


class Replica:
    """One process behind a proxy of its own, which logs what it asked for."""

    def __init__(self, process: OperatorProcess, proxy: FaultProxy) -> None:
        self.operator = process
        self.proxy = proxy

    @property
    def role(self) -> str:
        """What /readyz says of it."""
        lines = self.operator.probe("/readyz")[1].splitlines()
        return next(line for line in lines if line in ("leading", "standing by"))

    @property
    def bindings(self) -> list[ProxiedRequest]:
        return [request for request in list(self.proxy.requests) if of_binding(request)]

    @property
    def writes(self) -> list[float]:
        """When it wrote, apart from the lease."""
        return [seen.time for seen in list(self.proxy.requests) if is_write(seen) and not of_the_lease(seen)]


class Replicas:
    """Those of one operator, and its pods: room for exactly these, so that one place too many or too few is seen."""

    def __init__(self, sandbox: Sandbox, start: Start, stack: ExitStack) -> None:
        self.sandbox = sandbox
        self.all: list[Replica] = []
        self._start = start
        self._stack = stack
        add_nodes(sandbox, [node(f"n{number}", cpu=str(ROOM)) for number in range(CROWD // ROOM)])

    def join(self, *, watch_seconds: float = 3.0, lease: str = SCALED) -> Replica:
        """One more; returns when it is ready. Silence on its streams is noticed after `watch_seconds` and 3 s."""
        proxy = self._stack.enter_context(FaultProxy(self.sandbox))
        settings = {
            "BONNY_LEADER_ELECTION": "true",
            "BONNY_POD_NAMESPACE": "default",
            "BONNY_WATCH_NAMESPACE": "__ALL__",
            "BONNY_GRACE_SECONDS": str(GRACE_SECONDS),
            "TEST_LEASE_SECONDS": lease,
            "TEST_WATCH_SECONDS": str(watch_seconds),
        }
        process = self._start(scheduled(), kubeconfig=proxy.kubeconfig, **settings)
        # Who lives longer than its proxy connects anew while that ends, and its last connection is nobody's.
        self._stack.callback(process.process.kill)
        self.all.append(Replica(process.wait_ready(), proxy))
        return self.all[-1]

    def pair(self, *, lease: str = SCALED) -> tuple[Replica, Replica]:
        """A leader and a standby, both ready."""
        leader = self.join(lease=lease)
        self.sandbox.eventually(lambda: leader.role == "leading")
        return leader, self.join(lease=lease)

    def create(self, numbers: Iterable[int]) -> None:
        """Create these pods, also while the API server restarts."""
        for number in numbers:
            made = pod(f"p{number}", scheduler="even", cpu="1")
            self.sandbox.eventually(
                lambda made=made: self.sandbox.request("POST", PODS, made).status in (201, 409),
                within_seconds=SEEN_SECONDS,
            )

    def until_all_are_placed(self) -> None:
        self.sandbox.eventually(lambda: len(placed(self.sandbox)) == CROWD, within_seconds=SEEN_SECONDS)

    def check(self) -> None:
        """No pod is forgotten, none was bound twice by all of them together, and no node has more than it has room."""
        where = placed(self.sandbox)
        assert set(where) == {f"p{number}" for number in range(CROWD)}
        assert set(Counter(where.values()).values()) == {ROOM}
        accepted = Counter(seen.path for replica in self.all for seen in replica.bindings if seen.status == 201)
        assert [path for path, times in accepted.items() if times > 1] == []
        assert len(accepted) <= CROWD
        for replica in self.all:
            assert "please report" not in replica.operator.text, replica.operator.text


@pytest.fixture
def replicas(sandbox: Sandbox, start_operator: Start) -> Iterator[Replicas]:
    sandbox.request("DELETE", f"{LEASE}/scheduled")
    with ExitStack() as stack:
        stack.callback(remove_all, sandbox)
        yield Replicas(sandbox, start_operator, stack)


@pytest.mark.parametrize("end", ["killed", "told to stop", "without its lease", "frozen"])
def test_b7_a_leader_that_ends_in_the_middle_of_a_backlog_leaves_no_pod_behind_and_none_is_bound_twice(
    replicas: Replicas, end: str
) -> None:
    """Of its bindings some are done, of some the answer was lost, and some are on their way when it ends."""
    sandbox = replicas.sandbox
    leader, standby = replicas.pair()
    numbers: dict[int, int] = {}

    def number(request: ProxiedRequest) -> int:
        """Of a binding: how many came before it."""
        return numbers.setdefault(id(request), len(numbers)) if of_binding(request) else -1

    leader.proxy.add(Fault(CommitThenDrop(), on=lambda request: DONE <= number(request) < LOST, times=None))
    on_their_way = leader.proxy.add(Fault(Hold(), on=lambda request: number(request) >= LOST, times=None))
    replicas.create(range(CROWD))
    sandbox.eventually(lambda: on_their_way.hits >= 10 and len(placed(sandbox)) == LOST, within_seconds=SEEN_SECONDS)

    process = leader.operator.process
    match end:
        case "killed":
            process.kill()
        case "told to stop":
            assert leader.operator.stop()[0] == 0
        case "without its lease":
            leader.proxy.add(Fault(Drop(), on=of_the_lease, times=None))
        case _:
            process.send_signal(signal.SIGSTOP)
    replicas.until_all_are_placed()
    assert isinstance(on_their_way.effect, Hold)
    on_their_way.effect.until.set()

    assert standby.role == "leading"
    assert max(leader.writes) < min(standby.writes)
    late = [seen for seen in leader.bindings if number(seen) >= LOST]
    if end == "frozen":
        # What it had sent arrives in the end, and is refused; but for requests whose deadline was over before it froze.
        failed = leader.operator.lines("binding failed")
        given_up = sum("did not answer within" in line["error"] for line in failed)
        expected = Counter({409: len(late) - given_up, None: given_up})
        assert expected[409]
        sandbox.eventually(lambda: Counter(seen.status for seen in late) == expected)
        process.send_signal(signal.SIGCONT)
        assert process.wait(10) == 3, "the watchdog ends it"
    else:
        assert {seen.status for seen in late} == {None}
    replicas.check()


def test_b7_a_leader_that_stops_lets_its_bindings_arrive_before_another_replica_leads(replicas: Replicas) -> None:
    """Regression: it took them back and released the lease; who leads next does not see one that arrives after all."""
    sandbox = replicas.sandbox
    leader, standby = replicas.pair(lease=PATIENT)
    effect = Hold()
    leader.proxy.add(Fault(effect, on=of_binding, times=None))
    replicas.create(range(CROWD))
    sandbox.eventually(lambda: len(leader.bindings) == Scheduler.max_bindings, within_seconds=SEEN_SECONDS)

    leader.operator.process.terminate()
    sandbox.eventually(lambda: leader.operator.lines("stopping"))
    looks = standby.proxy.count(of_the_lease)
    sandbox.eventually(lambda: standby.proxy.count(of_the_lease) >= looks + 3)
    assert standby.role == "standing by"
    assert standby.writes == []
    effect.until.set()

    assert leader.operator.process.wait(10) == 0
    assert [seen.status for seen in leader.bindings] == [201] * Scheduler.max_bindings
    replicas.until_all_are_placed()
    replicas.check()


def test_b8_a_rolling_restart_while_pods_come_loses_none_and_binds_none_twice(replicas: Replicas) -> None:
    old = replicas.join()
    with ThreadPoolExecutor() as pool:
        creating = pool.submit(replicas.create, range(CROWD))
        for already in (20, 60):
            new = replicas.join()
            replicas.sandbox.eventually(
                lambda already=already: len(placed(replicas.sandbox)) >= already, within_seconds=SEEN_SECONDS
            )
            assert old.operator.stop()[0] == 0
            old = new
        creating.result(SEEN_SECONDS)

    replicas.until_all_are_placed()
    replicas.check()


def test_b9_replicas_whose_api_server_is_killed_at_full_load_place_every_pod_once(start_operator: Start) -> None:
    with Sandbox() as own, ExitStack() as stack, ThreadPoolExecutor() as pool:
        replicas = Replicas(own, start_operator, stack)
        replicas.pair()
        creating = pool.submit(replicas.create, range(CROWD))
        for already in (20, 60):
            own.eventually(lambda already=already: len(placed(own)) >= already, within_seconds=SEEN_SECONDS)
            own.apiserver.kill()
            own.apiserver.start()
        creating.result(SEEN_SECONDS)

        replicas.until_all_are_placed()
        replicas.check()
        for replica in replicas.all:
            assert replica.operator.stop()[0] == 0


def test_b10_who_takes_over_binds_nothing_to_nodes_that_went_while_it_saw_none(replicas: Replicas) -> None:
    """A standby's caches are warm, not true: it decides when its streams are current."""
    sandbox = replicas.sandbox
    leader, standby = replicas.pair()
    down = standby.proxy.add(Fault(Respond(503), on=of_nodes, times=None))
    standby.proxy.cut_all()
    sandbox.eventually(lambda: down.hits >= 1)
    leader.operator.process.kill()
    for number in range(1, CROWD // ROOM):
        sandbox.delete("v1", "Node", f"n{number}")
    compact(sandbox)
    replicas.create(range(ROOM))
    sandbox.eventually(lambda: standby.role == "leading", within_seconds=SEEN_SECONDS)
    refused = down.hits
    sandbox.eventually(lambda: down.hits > refused, within_seconds=SEEN_SECONDS)
    assert standby.bindings == []
    standby.proxy.remove(down)

    sandbox.eventually(lambda: len(placed(sandbox)) == ROOM, within_seconds=SEEN_SECONDS)
    assert set(placed(sandbox).values()) == {"n0"}


def test_b11_a_new_leader_lists_again_because_its_streams_may_be_silent(replicas: Replicas) -> None:
    """A stream that says nothing more looks like one on which nothing happens, for minutes."""
    sandbox = replicas.sandbox
    leader = replicas.join()
    sandbox.eventually(lambda: leader.role == "leading")
    standby = replicas.join(watch_seconds=200.0)
    silent = standby.proxy.add(Fault(Stall(), on=watch_of_pods, times=None))
    standby.proxy.cut_all()
    sandbox.eventually(lambda: silent.hits >= 1, within_seconds=SEEN_SECONDS)
    replicas.create(range(CROWD // 2))
    sandbox.eventually(lambda: len(placed(sandbox)) == CROWD // 2, within_seconds=SEEN_SECONDS)

    leader.proxy.add(Fault(Hold(), on=of_binding, times=None))
    replicas.create(range(CROWD // 2, CROWD))
    assert standby.role == "standing by"
    leader.operator.process.kill()

    replicas.until_all_are_placed()
    replicas.check()
