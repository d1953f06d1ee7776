"""Fights on a real API server: a rival that undoes at once what a controller writes, until it stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bonny import Axn, Controller, Owned, Resource
from bonny.core import fights
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import FaultProxy, ProxiedRequest
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    PartsController,
    Thing,
    config_map,
    operator_of,
    path_of,
    thing,
    until_reconciled,
)

LONGEST = 2.0
# Five corrections at once, after 1 s another one, and then one each 2 s; one more may be on its way.
SPAN = 8.0
MOST = 5 + 1 + SPAN / LONGEST + 1


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


class Finalizing(Controller[Thing]):
    """Has nothing but a finalizer."""

    async def reconcile(self, axn: Axn[Thing]) -> None: ...

    async def finalize(self, axn: Axn[Thing]) -> None: ...


class FinalizedParts(PartsController):
    """The parts, and a finalizer."""

    async def finalize(self, axn: Axn[Thing]) -> None: ...


class Rival:
    """Undoes what it sees as soon as it sees it; `undone` counts how often."""

    def __init__(self, undo: Callable[[], bool]) -> None:
        self.undone = 0
        self._undo = undo
        self._stop = threading.Event()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join(10.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.undone += self._undo()


def child_path(namespace: str, name: str = "child") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}"


def undoing(sandbox: Sandbox, namespace: str, what: str) -> Callable[[], bool]:
    """What the rival does again and again; returns whether there was something to undo."""

    def field() -> bool:
        found = sandbox.request("GET", child_path(namespace)).body
        if found.get("data", {}).get("size") != "1":
            return False
        change = {"data": {"size": "0"}}
        path = f"{child_path(namespace)}?fieldManager=kubectl-rival"
        return sandbox.request("PATCH", path, change, content_type=MERGE).status == 200

    def child() -> bool:
        return sandbox.request("DELETE", child_path(namespace)).status == 200

    def finalizer() -> bool:
        found = sandbox.request("GET", path_of("t1", namespace)).body
        if not found["metadata"].get("finalizers"):
            return False
        change = {"metadata": {"finalizers": None}}
        return sandbox.request("PATCH", path_of("t1", namespace), change, content_type=MERGE).status == 200

    return {"field": field, "child": child, "finalizer": finalizer}[what]


def is_right(sandbox: Sandbox, namespace: str, what: str) -> bool:
    if what == "finalizer":
        return bool((sandbox.get(*THING, "t1", namespace=namespace) or {})["metadata"].get("finalizers"))
    return (sandbox.get("v1", "ConfigMap", "child", namespace=namespace) or {}).get("data") == {"size": "1"}


def reports(sandbox: Sandbox, namespace: str) -> list[Resource]:
    events = sandbox.items("events.k8s.io/v1", "Event", namespace=namespace)
    return [event for event in events if event["reason"] == "RepeatedDrift"]


SAID = {
    "field": "field manager 'kubectl-rival' sets .data.size",
    "child": "an unknown writer deletes it",
    "finalizer": "another writer removes the finalizer",
}


@pytest.mark.parametrize("what", SAID)
def test_a_rival_that_undoes_each_correction_costs_few_writes_and_is_reported_once(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Regression: the two wrote against each other 34 times a second for ever, and nobody was told."""
    monkeypatch.setattr(fights, "LONGEST_SECONDS", LONGEST)
    corrected = path_of("t1", namespace) if what == "finalizer" else child_path(namespace)

    def is_correction(request: ProxiedRequest) -> bool:
        return request.method == "PATCH" and request.path.partition("?")[0] == corrected

    controller = Finalizing if what == "finalizer" else PartsController
    rival = Rival(undoing(sandbox, namespace, what))
    with serving(operator_of(controller), proxy.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, parts=["child", "bystander"]))
        until_reconciled(sandbox, "t1", namespace)
        began = time.monotonic()
        with rival.at_work():
            sandbox.eventually(lambda: len(reports(sandbox, namespace)) == 1)
            if what != "finalizer":
                # The same object's other child does not wait.
                sandbox.request(
                    "PATCH", child_path(namespace, "bystander"), {"data": {"size": "9"}}, content_type=MERGE
                )
                wanted = {"size": "1"}
                sandbox.eventually(
                    lambda: (sandbox.get("v1", "ConfigMap", "bystander", namespace=namespace) or {})["data"] == wanted,
                    within_seconds=5.0,
                )
            time.sleep(max(began + SPAN - time.monotonic(), 0.0))  # the span in which corrections are counted
            took = time.monotonic() - began
            corrections = proxy.count(is_correction, since=began)
            undone = rival.undone
        sandbox.eventually(lambda: is_right(sandbox, namespace, what), within_seconds=LONGEST + 5.0)
        assert undone >= 5
        assert corrections <= MOST + (took - SPAN) / LONGEST
        (report,) = reports(sandbox, namespace)
        assert SAID[what] in report["note"]
        assert report.get("series") is None


@contextmanager
def policy_that_removes_finalizers(sandbox: Sandbox, namespace: str) -> Iterator[None]:
    """In force for the Things of that namespace; removed at the end."""
    rules = {"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["things"]}
    patch = '[JSONPatch{op: "remove", path: "/metadata/finalizers"}]'
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "no-finalizers"},
        "spec": {
            "matchConstraints": {"resourceRules": [rules]},
            "matchConditions": [
                {"name": "there", "expression": f"request.namespace == '{namespace}'"},
                {"name": "any", "expression": "has(object.metadata.finalizers)"},
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            "reinvocationPolicy": "Never",
        },
    }
    metadata, spec = {"name": "no-finalizers"}, {"policyName": "no-finalizers"}
    binding = {**policy, "kind": "MutatingAdmissionPolicyBinding", "metadata": metadata, "spec": spec}
    probe = thing("probe", namespace=namespace)
    probe["metadata"]["finalizers"] = ["example.com/probe"]

    def in_force() -> bool:
        made = sandbox.request("POST", f"{path_of('', namespace).rstrip('/')}?dryRun=All", probe)
        assert made.status == 201, made.body
        return "finalizers" not in made.body["metadata"]

    sandbox.apply([policy, binding])
    try:
        sandbox.eventually(in_force, within_seconds=30.0)
        yield
    finally:
        for plural in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            sandbox.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}/no-finalizers")


def test_a_finalizer_that_a_policy_removes_is_reported_and_nothing_is_created(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy
) -> None:
    """Regression: the patch was answered 200, so the child was made, and `finalize` never ran."""

    def condition() -> Resource:
        status = (sandbox.get(*THING, "t1", namespace=namespace) or {}).get("status") or {}
        return next((each for each in status.get("conditions") or () if each["type"] == "Reconciled"), {})

    with serving(operator_of(FinalizedParts), proxy.kubeconfig):
        with policy_that_removes_finalizers(sandbox, namespace):
            sandbox.apply(thing("t1", namespace=namespace, parts=["child"]))
            sandbox.eventually(lambda: len(reports(sandbox, namespace)) == 1, within_seconds=30.0)

            said = condition()
            assert (said["status"], said["reason"]) == ("False", "Retry")
            assert "an admission webhook or policy of the cluster removes it" in said["message"]
            assert sandbox.get("v1", "ConfigMap", "child", namespace=namespace) is None
            assert proxy.count(lambda request: request.method != "GET" and "/configmaps/" in request.path) == 0

        sandbox.eventually(lambda: is_right(sandbox, namespace, "finalizer"), within_seconds=60.0)
        until_reconciled(sandbox, "t1", namespace)
        assert sandbox.get("v1", "ConfigMap", "child", namespace=namespace) is not None


def test_the_next_change_of_a_user_does_not_wait_for_a_fight(sandbox: Sandbox, namespace: str) -> None:
    class Sized(Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            axn.register_descendant(config_map("child", size=str(axn.spec.size)))

    def size() -> str:
        return str((sandbox.get("v1", "ConfigMap", "child", namespace=namespace) or {})["data"]["size"])

    with serving(operator_of(Sized), sandbox.kubeconfig) as at_work:
        sandbox.apply(thing("t1", namespace=namespace))
        until_reconciled(sandbox, "t1", namespace)
        (worker,) = at_work.process.workers
        # As in the middle of a fight that has lasted for long.
        worker.router.fights.wait = lambda *_, **__: 3600.0  # type: ignore[method-assign]
        handled = worker.handled
        sandbox.request("PATCH", child_path(namespace), {"data": {"size": "0"}}, content_type=MERGE)
        sandbox.eventually(lambda: worker.handled > handled)
        assert size() == "0"

        sandbox.request("PATCH", path_of("t1", namespace), {"spec": {"size": 2}}, content_type=MERGE)

        sandbox.eventually(lambda: size() == "2")
