"""Children and related objects on a real API server: what wakes a handler, and what it finds in the cache then."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest

from bonny import Axn, Controller, Operator, Owned, Related, Resource, compat
from bonny.core import own_writes, watch
from bonny.core.backoff import Backoff
from bonny.engine.stream import Stream
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, FaultProxy, Stall
from tests.support.serving import serving
from tests.support.things import (
    GROUP,
    MERGE,
    THING,
    Thing,
    config_map,
    deployment,
    names,
    operator_of,
    spec,
    thing,
    until_reconciled,
)
from tests.unit.test_how_to import code

DEPLOYMENT = ("apps/v1", "Deployment")


@pytest.fixture(autouse=True, scope="module")
def _served(sandbox: Sandbox) -> None:
    sandbox.apply(crds([Thing], GROUP))


def parts_of(sandbox: Sandbox, namespace: str) -> int | None:
    found: Any = sandbox.get(*THING, "t1", namespace=namespace) or {}
    return (found.get("status") or {}).get("parts")


def test_a_created_child_wakes_its_handler_when_another_client_changes_its_status(
    sandbox: Sandbox, namespace: str
) -> None:
    """As controller-runtime's `Owns`: nothing has to be looked at for that. The own write itself wakes nobody."""
    ran: list[tuple[str, ...]] = []

    class Serves(Controller[Thing]):
        owns = (Owned(*DEPLOYMENT),)

        async def reconcile(self, axn: Axn[Thing]) -> None:
            axn.register_descendant(deployment("served"))
            ran.append(tuple(sorted(axn.reasons)))

    with serving(operator_of(Serves), sandbox.kubeconfig) as at_work:
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: sandbox.get(*DEPLOYMENT, "served", namespace=namespace))
        worker = at_work.process.workers[0]
        sandbox.eventually(lambda: worker.handled == 1)
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/served/status"
        for replicas in (1, 2):
            status = {"status": {"replicas": replicas, "readyReplicas": replicas}}
            assert sandbox.request("PATCH", path, status, content_type=MERGE).status == 200
            sandbox.eventually(lambda replicas=replicas: worker.handled == 1 + replicas)
    assert ran == [("added",), ("child",), ("child",)]


class Grows(Controller[Thing]):
    """As many ConfigMaps as `size` says, one more per reconcile; the newest stay when there are too many."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Thing]) -> None:
        found = axn.children("v1", "ConfigMap", selector=f"!{axn.spec.label}")
        for child in found[max(len(found) - axn.spec.size, 0) :]:
            axn.keep_descendant(child)
        if len(found) < axn.spec.size:
            axn.register_descendant(config_map(f"c-{len(found)}"))
        axn.update_status(lambda status: {**status, "parts": len(found)})


def test_a_handler_that_counts_its_children_misses_none_and_sees_the_end_of_what_it_does(
    sandbox: Sandbox, namespace: str
) -> None:
    """A list without the child that the last reconcile made would name that one again, and nothing would follow."""
    with serving(operator_of(Grows), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace, size=12))
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 12)
        assert names(sandbox, namespace) == {f"c-{number}" for number in range(12)}

        spec(sandbox, "t1", namespace, size=2)

        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 2)
        assert names(sandbox, namespace) == {"c-8", "c-9"}, "the last two by name"


def test_a_handler_gets_no_list_without_the_child_that_it_made_however_late_the_watch_is(
    sandbox: Sandbox, namespace: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_writes, "BARRIER_SECONDS", 0.2)
    monkeypatch.setattr(watch, "CATCH_UP_SECONDS", 0.1)
    options = watch.WatchOptions(backoff=Backoff(base=0.05, cap=0.1))
    with serving(operator_of(Grows, watch_options=options), proxy.kubeconfig) as at_work:
        sandbox.apply(thing("t1", namespace=namespace, size=3))
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 3)
        stalled = proxy.add(
            Fault(Stall(), on=lambda request: request.is_watch and "configmaps" in request.path, times=None)
        )
        proxy.cut_all()
        sandbox.eventually(lambda: stalled.hits > 0 and all(map(is_current, at_work.process.streams)))

        spec(sandbox, "t1", namespace, size=5)

        told = until_reconciled(sandbox, "t1", namespace, "False", "Retry")
        (message,) = [each["message"] for each in told["status"]["conditions"] if each["type"] == "Reconciled"]
        assert message == "the children of kind ConfigMap are unknown: the watch is not up to date"
        assert names(sandbox, namespace) == {"c-0", "c-1", "c-2", "c-3"}
        assert parts_of(sandbox, namespace) == 3

        proxy.remove(stalled)
        proxy.cut_all()

        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 5, within_seconds=20.0)
        assert names(sandbox, namespace) == {f"c-{number}" for number in range(5)}


def test_a_child_that_appears_after_the_handler_listed_is_kept_until_it_was_listed(
    sandbox: Sandbox, namespace: str
) -> None:
    """Regression: the last child that a former leader created was pruned, because it was missing from the list by which
    the handler kept children."""
    lists: list[list[str]] = []

    class Keeps(compat.Controller[Thing]):
        owns = (Owned("v1", "ConfigMap"),)

        def reconcile(self, axn: compat.Axn[Thing]) -> None:
            found = axn.children("v1", "ConfigMap")
            lists.append([child["metadata"]["name"] for child in found])
            for child in found:
                axn.keep_descendant(child)
            if not found:
                labels = {"app.kubernetes.io/managed-by": axn.operator, "bonny.dev/owner-uid": axn.uid}
                late = config_map("late", namespace=namespace)
                late["metadata"]["labels"] = labels
                query = urlencode({"fieldManager": f"{axn.operator}/Keeps"})
                path = f"/api/v1/namespaces/{namespace}/configmaps/late?{query}"
                sandbox.request("PATCH", path, late, content_type="application/apply-patch+yaml")
                sandbox.eventually(lambda: axn.children("v1", "ConfigMap"))

    with serving(operator_of(Keeps), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: len(lists) >= 2)
        until_reconciled(sandbox, "t1", namespace)

    assert lists[:2] == [[], ["late"]]
    assert names(sandbox, namespace) == {"late"}


def is_current(stream: Stream) -> bool:
    return stream.current


def test_objects_that_match_a_selector_are_found_and_keys_decide_who_wakes(sandbox: Sandbox, namespace: str) -> None:
    class Counts(Controller[Thing]):
        related = (
            Related(
                "v1",
                "Secret",
                label_selector=f"of={namespace}",
                keys=lambda secret: [secret["metadata"]["labels"].get("thing", "")],
                indexes={"thing": "thing"},
            ),
        )

        async def reconcile(self, axn: Axn[Thing]) -> None:
            found = axn.related("v1", "Secret", selector="thing in (t1, t2), tier notin (old)", index=("thing", "t1"))
            axn.update_status(lambda status: {**status, "parts": len(found)})

    def secret(name: str, **labels: str) -> Resource:
        metadata = {"name": name, "namespace": namespace, "labels": {"of": namespace, **labels}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    with serving(operator_of(Counts), sandbox.kubeconfig):
        sandbox.apply(thing("t1", namespace=namespace))
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 0)
        sandbox.apply([secret("a", thing="t1"), secret("b", thing="t1", tier="old"), secret("c", thing="t2")])
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 1)
        sandbox.apply(secret("d", thing="t1"))
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 2)
        sandbox.delete("v1", "Secret", "a", namespace=namespace)
        sandbox.eventually(lambda: parts_of(sandbox, namespace) == 1)


def test_the_cron_job_of_the_how_to_page_starts_keeps_and_prunes_its_jobs(
    sandbox: Sandbox, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ModuleType("cron_job_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    exec(code("manage-many-children"), vars(page))
    sandbox.apply(crds([page.CronJob], GROUP))
    operator = Operator(name="cron-jobs", group=GROUP, controllers=[page.CronJobController])

    def jobs() -> list[str]:
        return [found["metadata"]["name"] for found in sandbox.items("batch/v1", "Job", namespace=namespace)]

    def active() -> list[str] | None:
        found: Any = sandbox.get(f"{GROUP}/v1", "CronJob", "c", namespace=namespace)
        status = found.get("status") or {}
        return status.get("active") if status.get("conditions") else None

    full = page.cron_job(schedule="0 0 1 1 *", successfulJobsHistoryLimit=0)
    full["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/cronjobs/c"
    long_ago = (datetime.now(UTC) - timedelta(days=800)).isoformat()
    with serving(operator, sandbox.kubeconfig):
        sandbox.apply({**full, "metadata": {"name": "c", "namespace": namespace}})
        sandbox.eventually(lambda: active() == [])
        assert jobs() == [], "created after the last time"

        sandbox.request("PATCH", f"{path}/status", {"status": {"lastScheduleTime": long_ago}}, content_type=MERGE)
        sandbox.request("PATCH", path, {"spec": {"concurrencyPolicy": "Forbid"}}, content_type=MERGE)
        sandbox.eventually(lambda: jobs() == active() != [])
        (name,) = jobs()

        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ended = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": now, "completionTime": now, "conditions": ended}
        job = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status"
        answer = sandbox.request("PATCH", job, {"status": status}, content_type=MERGE)
        assert answer.status == 200, answer.body
        sandbox.eventually(lambda: jobs() == active() == [])
