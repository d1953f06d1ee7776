"""Rows L: who leads, when the lease cannot be renewed, its holder stands still or dies, or people edit it.

Every replica is a process of its own behind a proxy of its own, and writes all the time while it leads. The proxies
note when a write arrives, on one clock.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from bonny.run.leader import EXPIRED_EXIT_CODE
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import CommitThenDrop, Drop, Effect, Fault, FaultProxy, Hold, ProxiedRequest, is_write
from tests.conftest import Start
from tests.faults.scene import SLOW
from tests.support.processes import OperatorProcess

CAMPAIGNER: Final = Path(__file__).parents[1] / "support" / "campaigner.py"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
# The times of the replicas, unless a row says otherwise.
DURATION, DEADLINE, LOOK = 3.0, 2.0, 0.2
# A process starts, and a busy machine takes its time.
SLACK: Final = 2.0
START_SECONDS: Final = 20.0
# How often a leader is looked at before it counts as standing still.
LOOK_SECONDS: Final = 0.05
LOOKS: Final = 10


def of_the_lease(request: ProxiedRequest) -> bool:
    return request.path.startswith(LEASES)


def renewal(request: ProxiedRequest) -> bool:
    return of_the_lease(request) and request.method == "PUT"


def work(request: ProxiedRequest) -> bool:
    return is_write(request) and not of_the_lease(request)


class Replica:
    """One process, its proxy, and what it wrote."""

    def __init__(self, proxy: FaultProxy, process: OperatorProcess) -> None:
        self.proxy = proxy
        self.operator = process

    @property
    def writes(self) -> list[float]:
        """When its writes arrived (monotonic seconds), so far."""
        return [request.time for request in list(self.proxy.requests) if work(request)]

    def wrote_since(self, moment: float) -> bool:
        return self.proxy.count(work, since=moment) > 0

    def send(self, number: signal.Signals) -> float:
        """Send a signal; returns when."""
        os.kill(self.operator.process.pid, number)
        return time.monotonic()

    def check(self) -> None:
        assert "Traceback" not in self.operator.text, self.operator.text


class Election:
    """Replicas that want the same lease."""

    def __init__(self, sandbox: Sandbox, start: Start, stack: ExitStack) -> None:
        self.sandbox = sandbox
        self.name = f"lease-{secrets.token_hex(4)}"
        self.replicas: list[Replica] = []
        self._start = start
        self._stack = stack

    def join(self, **settings: str) -> Replica:
        """Start one more replica; return at once."""
        proxy = self._stack.enter_context(FaultProxy(self.sandbox))
        command = [sys.executable, str(CAMPAIGNER)]
        process = self._start(command, kubeconfig=proxy.kubeconfig, TEST_LEASE=self.name, **settings)
        # Who lives longer than its proxy connects anew while that ends, and its last connection is nobody's.
        self._stack.callback(process.process.kill)
        self.replicas.append(Replica(proxy, process))
        return self.replicas[-1]

    def leader_and_standby(self, **settings: str) -> tuple[Replica, Replica]:
        """Two replicas, of which the first leads and works."""
        leader = self.join(**settings)
        self.until_at_work(leader)
        standby = self.join(**settings)
        self.sandbox.eventually(lambda: standby.proxy.count(of_the_lease) > 1, within_seconds=START_SECONDS)
        return leader, standby

    def until_at_work(self, replica: Replica, *, since: float = 0.0, within_seconds: float = START_SECONDS) -> float:
        """Return when it wrote something after `since`; the moment of its first write."""
        self.sandbox.eventually(lambda: replica.wrote_since(since), within_seconds=within_seconds)
        return next(moment for moment in replica.writes if moment >= since)

    def goes_on(self, replica: Replica, *, for_seconds: float) -> None:
        """Return after this time, in which the replica writes at least every half a second.

        Counted in looks, each a request of ours and a wait of 50 ms: where the machine stands still, nobody can write.
        """
        ends = time.monotonic() + for_seconds
        while (now := time.monotonic()) < ends:
            looks = 0
            while not replica.wrote_since(now):
                looks += 1
                assert looks <= LOOKS, f"no write within {time.monotonic() - now:.1f} s"
                assert self.lease["metadata"]["name"] == self.name
                time.sleep(LOOK_SECONDS)

    @property
    def lease(self) -> Any:
        found = self.sandbox.get("coordination.k8s.io/v1", "Lease", self.name)
        assert found is not None
        return found

    def edit(self, **spec: Any) -> None:
        """Change fields of its spec by hand, whatever its version."""
        path = f"{LEASES}/{self.name}"
        answer = self.sandbox.request("PATCH", path, {"spec": spec}, content_type="application/merge-patch+json")
        assert answer.status == 200, answer

    @property
    def reigns(self) -> list[Replica]:
        """Who wrote, in order: each once for all its writes in a row."""
        written = sorted((moment, number) for number, one in enumerate(self.replicas) for moment in one.writes)
        return [self.replicas[number] for number, _ in groupby(number for _, number in written)]


@pytest.fixture
def election(sandbox: Sandbox, start_operator: Start) -> Iterator[Election]:
    with ExitStack() as stack:
        made = Election(sandbox, start_operator, stack)
        yield made
        for replica in made.replicas:
            replica.check()


# --- L1, L2: a leader that cannot renew, or does nothing at all -------------------------------------------------------


@pytest.mark.parametrize("effect", [pytest.param(Drop(), id="reset"), pytest.param(Hold(), id="unanswered")])
def test_l1_a_leader_that_cannot_renew_stops_before_another_starts(election: Election, effect: Effect) -> None:
    old, new = election.leader_and_standby()
    began = time.monotonic()
    fault = old.proxy.add(Fault(effect, on=of_the_lease, times=None))

    taken_over = election.until_at_work(new, within_seconds=DURATION + SLACK)

    assert election.reigns == [old, new]
    assert began + DEADLINE / 2 < old.writes[-1] < taken_over
    assert [line["message"] for line in old.operator.lines("no longer leading")] == ["no longer leading"]
    # It goes on as a candidate, and leads again when the other leaves.
    old.proxy.remove(fault)
    if isinstance(effect, Hold):
        effect.until.set()
    left = new.send(signal.SIGTERM)
    election.until_at_work(old, since=left, within_seconds=SLACK)
    assert election.reigns == [old, new, old]
    assert election.lease["spec"]["leaseTransitions"] == 2


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=SLOW)])
def test_l2_a_leader_that_stood_still_for_longer_than_its_lease_writes_nothing_more(
    election: Election, rounds: int
) -> None:
    for _ in range(rounds):
        old, new = election.leader_and_standby()
        old.send(signal.SIGSTOP)
        stopped = time.monotonic()
        taken_over = election.until_at_work(new, since=stopped, within_seconds=DURATION + SLACK)

        thawed = old.send(signal.SIGCONT)

        assert old.operator.process.wait(SLACK) == EXPIRED_EXIT_CODE
        assert "expired before all work had stopped" in old.operator.text
        assert not old.wrote_since(thawed)
        assert old.writes[-1] < taken_over
        new.send(signal.SIGTERM)
        assert new.operator.process.wait(SLACK) == 0
    assert len(election.reigns) == 2 * rounds


def test_l2_a_leader_that_stood_still_for_a_moment_continues(election: Election) -> None:
    leader, standby = election.leader_and_standby()
    leader.send(signal.SIGSTOP)
    time.sleep(DEADLINE / 2)  # the pause itself is what the row is about
    thawed = leader.send(signal.SIGCONT)

    election.until_at_work(leader, since=thawed, within_seconds=SLACK)

    assert not standby.writes
    assert leader.operator.lines("no longer leading") == []


@pytest.mark.parametrize(("mode", "until_done"), [("blocks", DURATION), ("clings", 2 * DURATION)])
def test_work_that_does_not_stop_is_ended_with_its_process(election: Election, mode: str, until_done: float) -> None:
    """A loop that is blocked hears of nothing, and what cannot be stopped must not go on besides another's work."""
    old = election.join(TEST_MODE=mode)
    election.until_at_work(old)
    new = election.join()
    old.proxy.add(Fault(Drop(), on=of_the_lease, times=None))

    assert old.operator.process.wait(START_SECONDS + until_done) == EXPIRED_EXIT_CODE

    ended = time.monotonic()
    assert old.operator.text.count("the process ends") == 1
    assert election.until_at_work(new) > old.writes[-1]
    assert election.reigns == [old, new]
    assert ended < election.until_at_work(new) + SLACK


# --- L3: a renewal that is stored and not answered --------------------------------------------------------------------


@pytest.mark.parametrize("times", [3, pytest.param(1, marks=SLOW)])
def test_l3_a_leader_whose_renewals_are_stored_but_not_answered_continues(election: Election, times: int) -> None:
    leader, standby = election.leader_and_standby()
    lost = leader.proxy.add(Fault(CommitThenDrop(), on=renewal, times=times))

    election.sandbox.eventually(lambda: lost.hits == times, within_seconds=START_SECONDS)
    election.goes_on(leader, for_seconds=DURATION + 1.0)

    assert not standby.writes
    assert leader.operator.lines("no longer leading") == []
    assert election.lease["spec"]["leaseTransitions"] == 0


def test_l3_a_candidate_whose_take_over_is_stored_but_not_answered_leads_all_the_same(election: Election) -> None:
    old, new = election.leader_and_standby()
    lost = new.proxy.add(Fault(CommitThenDrop(), on=renewal))
    died = old.send(signal.SIGKILL)

    election.until_at_work(new, since=died, within_seconds=DURATION + SLACK)

    assert lost.hits == 1
    assert election.lease["spec"]["leaseTransitions"] == 1


# --- L5: what people do -----------------------------------------------------------------------------------------------


def test_l5_a_lease_that_is_deleted_is_made_again_by_its_holder(election: Election) -> None:
    leader, standby = election.leader_and_standby()
    before = election.lease["metadata"]["uid"]
    election.sandbox.delete("coordination.k8s.io/v1", "Lease", election.name)

    election.sandbox.eventually(lambda: election.lease["metadata"]["uid"] != before)
    election.goes_on(leader, for_seconds=DURATION + 1.0)

    assert not standby.writes
    assert leader.operator.lines("no longer leading") == []


@pytest.mark.parametrize("holder", ["somebody-else", ""])
def test_l5_a_holder_that_is_changed_by_hand_stops_and_a_lease_later_one_leads(election: Election, holder: str) -> None:
    old, _ = election.leader_and_standby()
    edited = time.monotonic()
    election.edit(holderIdentity=holder)

    election.sandbox.eventually(lambda: old.operator.lines("no longer leading") != [], within_seconds=SLACK)
    stopped = time.monotonic()
    # A write that was under way as it stopped may arrive later: the lease says who leads, not the next write.
    election.sandbox.eventually(
        lambda: election.lease["spec"]["leaseTransitions"] == 1, within_seconds=DURATION + SLACK
    )
    taken = time.monotonic()
    election.sandbox.eventually(lambda: any(replica.wrote_since(taken) for replica in election.replicas))

    assert stopped - edited < DEADLINE
    assert len(election.reigns) <= 2
    assert election.lease["spec"]["leaseTransitions"] == 1


def test_l5_fields_that_others_write_into_the_lease_stay_and_disturb_no_replica(election: Election) -> None:
    leader, standby = election.leader_and_standby()
    path, merge = f"{LEASES}/{election.name}", "application/merge-patch+json"
    for number in range(3):
        labels = {"metadata": {"labels": {"edited": str(number)}}}
        election.sandbox.request("PATCH", path, labels, content_type=merge)
        election.goes_on(leader, for_seconds=1.0)

    assert election.lease["metadata"]["labels"] == {"edited": "2"}
    assert not standby.writes
    assert leader.operator.lines("no longer leading") == []


# --- failover ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=SLOW)])
@pytest.mark.parametrize(
    ("number", "within"),
    [
        pytest.param(signal.SIGKILL, DURATION + LOOK, id="killed"),
        pytest.param(signal.SIGTERM, LOOK, id="terminated"),
    ],
)
def test_a_leader_that_ends_is_followed_in_time(
    election: Election, number: signal.Signals, within: float, rounds: int
) -> None:
    leader, standby = election.leader_and_standby()
    waits = []
    for _ in range(rounds):
        ended = leader.send(number)
        waits.append(election.until_at_work(standby, since=ended, within_seconds=within + SLACK) - ended)
        code = leader.operator.process.wait(SLACK)
        assert code == (-signal.SIGKILL if number is signal.SIGKILL else 0)
        leader, standby = standby, election.join()
        election.sandbox.eventually(
            lambda standby=standby: standby.proxy.count(of_the_lease) > 1, within_seconds=START_SECONDS
        )

    assert max(waits) < within + 1.0, waits
    assert election.reigns == election.replicas[:-1]
    print(f"\n{number.name}: followed after {min(waits):.2f} to {max(waits):.2f} s")


@SLOW
@pytest.mark.parametrize(
    ("number", "within"), [(signal.SIGKILL, 18.0), (signal.SIGTERM, 3.0)], ids=["killed", "terminated"]
)
def test_with_the_default_times_a_leader_that_ends_is_followed_in_time(
    election: Election, number: signal.Signals, within: float
) -> None:
    leader, standby = election.leader_and_standby(TEST_TIMING="15/10/2")
    ended = leader.send(number)

    wait = election.until_at_work(standby, since=ended, within_seconds=within + SLACK) - ended

    assert wait < within
    print(f"\n{number.name}: followed after {wait:.2f} s")
