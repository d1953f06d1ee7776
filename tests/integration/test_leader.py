"""Leadership on a real API server: what the Lease says, what happens without rights, how terms follow each other.

What happens when replicas freeze, die or are cut off is in tests/faults/test_leader.py, with processes of their own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import pytest

from bonny.client.api import Client
from bonny.client.config import Cluster, Kubeconfig
from bonny.client.errors import NotLeading
from bonny.core.lease import LeaseTiming
from bonny.kinds import Kind
from bonny.resource import Key, Resource
from bonny.run import leader
from bonny.run.leader import LEASE, Leadership, own_identity
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Hold, Respond

CONFIG_MAP = Kind("v1", "ConfigMap")
TIMING = LeaseTiming(lease_duration=6, renew_deadline=4.0, retry_period=0.4)
PATIENCE = 10.0

Begin = Callable[..., Leadership]


@pytest.fixture
def name() -> str:
    return f"lease-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def begin(sandbox: Sandbox, name: str) -> AsyncIterator[Begin]:
    """Starts campaigns. Those that go on are ended with the test, and nothing is left that could end this process."""
    async with AsyncExitStack() as stack:

        def start(
            identity: str = "a",
            *,
            cluster: Cluster | None = None,
            namespace: str = "default",
            timing: LeaseTiming = TIMING,
        ) -> Leadership:
            client = Client(cluster or Kubeconfig(str(sandbox.kubeconfig)), user_agent="leader/1.0")
            stack.push_async_callback(client.close)
            made = Leadership(client, namespace=namespace, name=name, identity=identity, timing=timing)
            campaign = asyncio.create_task(made.run())

            async def end() -> None:
                campaign.cancel()
                await asyncio.wait({campaign})
                made.stood_down()

            stack.push_async_callback(end)
            return made

        yield start


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    with FaultProxy(sandbox) as started:
        yield started


@pytest.fixture
def spec(sandbox: Sandbox, name: str) -> Callable[[], Any]:
    """The Lease's spec as it is."""

    def read() -> Any:
        found = sandbox.get("coordination.k8s.io/v1", "Lease", name)
        assert found is not None
        return found["spec"]

    return read


def edit(sandbox: Sandbox, name: str, **spec: Any) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{name}"
    merge = "application/merge-patch+json"
    assert sandbox.request("PATCH", path, {"spec": spec}, content_type=merge).status == 200


async def leads(leadership: Leadership) -> None:
    async with asyncio.timeout(PATIENCE):
        await leadership.acquired()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  what is waited for is the server's state, and tells nobody
            await asyncio.sleep(0.02)


# --- what the Lease says ----------------------------------------------------------------------------------------------


async def test_the_lease_says_who_leads_and_since_when(begin: Begin, spec: Callable[[], Any]) -> None:
    leadership = begin("pod-1_x")
    assert leadership.remaining() == 0.0
    await leads(leadership)
    first = spec()

    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("pod-1_x", 6, 0)
    assert abs(datetime.fromisoformat(first["acquireTime"]).timestamp() - time.time()) < PATIENCE
    assert 3.0 < leadership.remaining() <= 4.0

    await until(lambda: spec()["renewTime"] > first["renewTime"])
    assert {**spec(), "renewTime": first["renewTime"]} == first
    await until(lambda: leadership.remaining() > TIMING.renew_deadline - 1.0)


async def test_a_lease_that_was_left_is_taken_over_by_the_next(begin: Begin, spec: Callable[[], Any]) -> None:
    first, second = begin("a"), begin("b")
    await asyncio.wait({asyncio.create_task(first.acquired()), asyncio.create_task(second.acquired())},
                       return_when=asyncio.FIRST_COMPLETED, timeout=PATIENCE)  # fmt: skip
    old, new = (first, second) if first.remaining() else (second, first)
    await old.release()
    assert old.remaining() == 0.0
    assert old.lost.is_set()
    assert spec()["holderIdentity"] in ("", new._candidate.identity)

    await leads(new)
    assert spec()["leaseTransitions"] == 1
    await new.release()
    assert (spec()["holderIdentity"], spec()["leaseDurationSeconds"]) == ("", 1)


async def test_a_lease_that_was_made_in_advance_is_taken(begin: Begin, sandbox: Sandbox, name: str) -> None:
    made = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": {"name": name, "namespace": "default"}}
    sandbox.apply(made)
    await leads(begin())


async def test_who_does_not_lead_writes_nothing(begin: Begin, sandbox: Sandbox) -> None:
    leadership = begin()
    made: Resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    cluster = Kubeconfig(str(sandbox.kubeconfig))
    async with Client(cluster, user_agent="work/1.0", fence=leadership.remaining) as client:
        with pytest.raises(NotLeading):
            await client.apply(CONFIG_MAP, made, manager="m")
        await leads(leadership)
        await client.apply(CONFIG_MAP, made, manager="m")
        await leadership.release()
        with pytest.raises(NotLeading):
            await client.delete(CONFIG_MAP, Key("default", "c"))


# --- trouble ----------------------------------------------------------------------------------------------------------


async def test_a_missing_permission_is_named_once_and_waited_for(
    begin: Begin, sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    account = f"campaigner-{uuid.uuid4().hex[:8]}"
    metadata = {"name": account, "namespace": "default"}
    sandbox.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    leadership = begin(cluster=Kubeconfig(str(sandbox.service_account_kubeconfig("default", account))))
    rights = {
        "read": ["get"],
        "all": ["get", "create", "update"],
    }

    def grant(verbs: list[str]) -> None:
        rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        }
        sandbox.apply([role, binding])

    def named() -> list[tuple[str, str]]:
        """What was warned of: verb, and the rule to add."""
        return [
            (record.verb, record.missing_rule)  # type: ignore[attr-defined]
            for record in caplog.records
            if record.message == "the lease cannot be used" and record.levelno == logging.WARNING
        ]

    rule = '- {apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: [get, create, update]}'
    with caplog.at_level(logging.DEBUG, "bonny.run.leader"):
        await until(lambda: len(caplog.records) >= 4)
        assert named() == [("get", rule)]

        grant(rights["read"])
        await until(lambda: len(named()) == 2)
        seen = len(caplog.records)
        await until(lambda: len(caplog.records) >= seen + 4)
        assert named() == [("get", rule), ("create", rule)]

        grant(rights["all"])
        await leads(leadership)


async def test_a_namespace_that_is_missing_is_waited_for(begin: Begin, sandbox: Sandbox) -> None:
    namespace = f"late-{uuid.uuid4().hex[:8]}"
    leadership = begin(namespace=namespace)
    await until(lambda: leadership._failing)
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await leads(leadership)


@pytest.mark.parametrize(
    "body",
    [
        b"<html></html>",
        b"[]",
        b"null",
        b'{"kind":"Lease"}',
        b'{"metadata":{"resourceVersion":7}}',
        b'{"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":[]}}',
        b'{"metadata":{"resourceVersion":"7"},"spec":null}',
    ],
)
async def test_an_answer_that_is_no_lease_is_waited_out(begin: Begin, proxy: FaultProxy, body: bytes) -> None:
    garbage = proxy.add(Fault(Respond(200, body, "application/json"), times=3))
    await leads(begin(cluster=Kubeconfig(str(proxy.kubeconfig))))

    assert garbage.hits == 3


async def test_leaving_takes_no_longer_than_half_a_renew_deadline(begin: Begin, proxy: FaultProxy) -> None:
    leadership = begin(cluster=Kubeconfig(str(proxy.kubeconfig)))
    await leads(leadership)
    proxy.add(Fault(Hold(), times=None))
    began = time.monotonic()
    await leadership.release()

    assert time.monotonic() - began < TIMING.request_seconds + 1.0
    assert leadership.remaining() == 0.0


async def test_to_leave_before_the_campaign_began_does_nothing(sandbox: Sandbox, name: str) -> None:
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="leader/1.0") as client:
        leadership = Leadership(client, namespace="default", name=name, identity="a")
        await leadership.release()
        await leadership.run()

    assert sandbox.get("coordination.k8s.io/v1", "Lease", name) is None


# --- one term after the other -----------------------------------------------------------------------------------------


async def test_no_term_begins_before_the_work_of_the_last_one_has_stopped(
    begin: Begin, sandbox: Sandbox, name: str, spec: Callable[[], Any]
) -> None:
    # Long enough for the watchdog not to come while it does not stand down.
    leadership = begin(timing=LeaseTiming(lease_duration=60, renew_deadline=40.0, retry_period=TIMING.retry_period))
    await leads(leadership)
    edit(sandbox, name, holderIdentity="nobody")
    async with asyncio.timeout(PATIENCE):
        await leadership.lost.wait()
    assert leadership.remaining() == 0.0
    edit(sandbox, name, holderIdentity="", leaseDurationSeconds=1)
    # It would have looked, and taken it, several times by now.
    await asyncio.sleep(4 * TIMING.retry_period)
    assert spec()["holderIdentity"] == ""

    leadership.stood_down()

    await leads(leadership)
    assert not leadership.lost.is_set()
    assert spec()["leaseTransitions"] == 1


async def test_the_watchdog_is_there_only_while_there_is_something_to_watch(begin: Begin) -> None:
    def watchdogs() -> int:
        return sum(thread.name == "lease watchdog" for thread in threading.enumerate())

    # One of an earlier test may still be on its way out: a thread that is told to end is not waited for.
    await until(lambda: watchdogs() == 0)
    leadership = begin()
    assert watchdogs() == 0
    await leads(leadership)
    assert watchdogs() == 1
    await leadership.release()
    await until(lambda: watchdogs() == 0)


# --- who, and when ----------------------------------------------------------------------------------------------------


def test_an_identity_is_the_pods_name_and_something_that_no_other_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BONNY_POD_NAME", "widgets-5d4f")
    assert own_identity().startswith("widgets-5d4f_")
    assert len({own_identity() for _ in range(100)}) == 100

    monkeypatch.delenv("BONNY_POD_NAME")
    assert own_identity().startswith(f"{os.uname().nodename}_")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the monotonic clock is all there is")
def test_the_clock_goes_on_while_the_machine_sleeps() -> None:
    assert abs(leader.clock() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1.0
