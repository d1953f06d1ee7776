"""The annotations bonny.dev/paused and bonny.dev/reconcile-at on a real API server."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from functools import partial

import pytest

from bonny import Axn, Controller, Operator, Owned, Spec, Status, Version, WithConditions
from bonny.resource import PAUSED, RECONCILE_AT, Resource
from bonny_dev.manifest import bundle
from bonny_dev.sandbox import Sandbox
from tests.support.serving import Serving, serving

GROUP = "resting.example.com"
API = f"/apis/{GROUP}/v1/namespaces/default/bells"
MAPS = "/api/v1/namespaces/default/configmaps"
runs: list[tuple[str, str, frozenset[str]]] = []


class BellSpec(Spec):
    """The desired state."""

    tone: str = "a"


class BellStatus(Status, WithConditions):
    """The observed state."""


class Bell(Version):
    """Rings."""

    kind = "Bell"
    version = "v1"
    storage = True
    hub = True
    spec: BellSpec
    status: BellStatus


class BellController(Controller[Bell]):
    """Publishes the tone in a ConfigMap."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Bell]) -> None:
        """Register it."""
        runs.append((axn.key.name, axn.action.value, frozenset(map(str, axn.reasons))))
        if axn.spec.tone == "wrong":
            raise RuntimeError("out of tune")
        metadata = {"name": axn.key.name, "namespace": axn.key.namespace}
        axn.register_descendant(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"tone": axn.spec.tone}}
        )

    async def finalize(self, axn: Axn[Bell]) -> None:
        """Note the call."""
        runs.append((axn.key.name, "finalize", frozenset()))


@pytest.fixture(scope="module")
def operator(sandbox: Sandbox) -> Iterator[Serving]:
    made = Operator(name="resting", group=GROUP, controllers=[BellController])
    sandbox.apply(bundle.documents(made, image=None, namespace="resting", local=True))
    Sandbox.eventually(lambda: sandbox.request("GET", f"/apis/{GROUP}/v1/bells").status == 200)
    with serving(made, sandbox.kubeconfig, leader_election=False) as at_work:
        yield at_work


def bell(name: str, *, tone: str = "a", **annotations: str) -> Resource:
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Bell", "metadata": metadata, "spec": {"tone": tone}}


def reconciled(sandbox: Sandbox, name: str) -> tuple[str, str]:
    """Reason and message of the condition."""
    live = sandbox.request("GET", f"{API}/{name}").body
    conditions = (live.get("status") or {}).get("conditions") or [{"reason": "", "message": ""}]
    return conditions[0]["reason"], conditions[0]["message"]


def shows(sandbox: Sandbox, name: str, wanted: tuple[str, str]) -> bool:
    return reconciled(sandbox, name) == wanted


def until(sandbox: Sandbox, name: str, reason: str) -> None:
    Sandbox.eventually(lambda: reconciled(sandbox, name)[0] == reason)


def tone(sandbox: Sandbox, name: str) -> str | None:
    answer = sandbox.request("GET", f"{MAPS}/{name}")
    return answer.body["data"]["tone"] if answer.status == 200 else None


def annotate(sandbox: Sandbox, name: str, **annotations: str | None) -> None:
    patch = {"metadata": {"annotations": annotations}}
    answer = sandbox.request("PATCH", f"{API}/{name}", patch, content_type="application/merge-patch+json")
    assert answer.status == 200, answer


def of(name: str) -> list[str]:
    return [action for each, action, _ in runs if each == name]


def paused_objects(operator: Serving) -> float:
    url = f"http://127.0.0.1:{operator.process.probes.port}/metrics"
    with urllib.request.urlopen(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith("bonny_paused_objects{")).rpartition(" ")[2])


@pytest.mark.parametrize("value", ["true", "until Monday", ""])
def test_a_new_object_that_is_paused_is_left_alone(sandbox: Sandbox, operator: Serving, value: str) -> None:
    name = f"new-{len(value)}"
    sandbox.apply([bell(name, **{PAUSED: value})])
    until(sandbox, name, "Paused")
    assert reconciled(sandbox, name)[1] == "the annotation bonny.dev/paused is set"
    assert (tone(sandbox, name), of(name)) == (None, [])
    assert "finalizers" not in sandbox.request("GET", f"{API}/{name}").body["metadata"]
    assert paused_objects(operator) >= 1
    annotate(sandbox, name, **{PAUSED: None})
    until(sandbox, name, "Succeeded")
    assert (tone(sandbox, name), of(name)) == ("a", ["add"])


def test_false_does_not_pause(sandbox: Sandbox, operator: Serving) -> None:
    sandbox.apply([bell("awake", **{PAUSED: "false"})])
    until(sandbox, "awake", "Succeeded")


def test_drift_and_changes_wait_until_the_pause_ends(sandbox: Sandbox, operator: Serving) -> None:
    sandbox.apply([bell("old")])
    until(sandbox, "old", "Succeeded")
    annotate(sandbox, "old", **{PAUSED: "true"})
    until(sandbox, "old", "Paused")
    before = of("old")
    drift = {"data": {"tone": "wrong"}}
    sandbox.request("PATCH", f"{MAPS}/old", drift, content_type="application/merge-patch+json")
    sandbox.apply([bell("old", tone="b", **{PAUSED: "true"})])
    # An object after it shows that the operator has seen both changes.
    sandbox.apply([bell("later")])
    until(sandbox, "later", "Succeeded")
    assert (tone(sandbox, "old"), of("old")) == ("wrong", before)
    annotate(sandbox, "old", **{PAUSED: "false"})
    Sandbox.eventually(lambda: tone(sandbox, "old") == "b")
    until(sandbox, "old", "Succeeded")


def test_a_paused_object_that_is_deleted_is_finalized(sandbox: Sandbox, operator: Serving) -> None:
    sandbox.apply([bell("doomed")])
    until(sandbox, "doomed", "Succeeded")
    annotate(sandbox, "doomed", **{PAUSED: "true"})
    until(sandbox, "doomed", "Paused")
    sandbox.delete(f"{GROUP}/v1", "Bell", "doomed", namespace="default")
    Sandbox.eventually(lambda: sandbox.request("GET", f"{API}/doomed").status == 404)
    assert of("doomed")[-1] == "finalize"


def test_a_new_value_of_reconcile_at_runs_the_handler_once(sandbox: Sandbox, operator: Serving) -> None:
    sandbox.apply([bell("asked")])
    until(sandbox, "asked", "Succeeded")
    for value in ("2026-11-24T20:00:00Z", "2026-11-24T20:01:00Z"):
        count = len(of("asked"))
        annotate(sandbox, "asked", **{RECONCILE_AT: value})
        wanted = ("Succeeded", f"handled bonny.dev/reconcile-at={value}")
        Sandbox.eventually(partial(shows, sandbox, "asked", wanted))
        assert len(of("asked")) == count + 1
        assert "requested" in [reasons for name, _, reasons in runs if name == "asked"][-1]
    annotate(sandbox, "asked", other="value")
    Sandbox.eventually(lambda: len(of("asked")) == count + 2)
    assert "requested" not in [reasons for name, _, reasons in runs if name == "asked"][-1]
    assert reconciled(sandbox, "asked")[0] == "Succeeded"


def test_a_long_value_is_cut(sandbox: Sandbox, operator: Serving) -> None:
    sandbox.apply([bell("long")])
    until(sandbox, "long", "Succeeded")
    annotate(sandbox, "long", **{RECONCILE_AT: "x" * 200_000})
    Sandbox.eventually(lambda: reconciled(sandbox, "long")[1] == f"handled bonny.dev/reconcile-at={'x' * 64}")


def test_a_request_for_an_object_that_never_succeeded_is_a_reason(sandbox: Sandbox, operator: Serving) -> None:
    """Regression: only objects with an earlier success had the reason, and a failing one needs it most."""
    sandbox.apply([bell("failing", tone="wrong")])
    until(sandbox, "failing", "HandlerFailed")
    annotate(sandbox, "failing", **{RECONCILE_AT: "now"})
    Sandbox.eventually(lambda: any("requested" in reasons for name, _, reasons in runs if name == "failing"))


def test_the_metric_follows_the_annotation_also_of_objects_that_fail_or_go(sandbox: Sandbox, operator: Serving) -> None:
    """Regression: an object counted as paused until its next success, or its deletion was handled."""
    Sandbox.eventually(lambda: paused_objects(operator) == 0)
    sandbox.apply([bell("fails-later", tone="wrong", **{PAUSED: "true"}), bell("goes", **{PAUSED: "true"})])
    until(sandbox, "fails-later", "Paused")
    until(sandbox, "goes", "Paused")
    assert paused_objects(operator) == 2
    annotate(sandbox, "fails-later", **{PAUSED: None})
    until(sandbox, "fails-later", "HandlerFailed")
    sandbox.delete(f"{GROUP}/v1", "Bell", "goes", namespace="default")
    Sandbox.eventually(lambda: paused_objects(operator) == 0)
