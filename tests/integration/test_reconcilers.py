"""Reconcilers on a real API server: the examples of Elixir's Bonny, with the rights that their rules ask for."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bonny import Kind, List, Reconciler, Resource, Scope, telemetry
from bonny.client import pages
from bonny.client.errors import Forbidden, Refusal
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, ProxiedRequest, Respond, is_list
from tests.support.heard import Heard, heard
from tests.support.place import place
from tests.support.waiting import running, until

POD = Kind("v1", "Pod")
GROUP = "reconcilers.example.com"


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard(*(name for name in telemetry.EVENTS if name.startswith("bonny.reconciler."))) as listener:
        yield listener


class PodPrinter(Reconciler):
    """Prints every pod of one namespace."""

    frequency = 0.2
    operation = List("v1", "Pod")

    def reconcile(self, pod: Resource) -> None:
        print(pod["kind"], pod["metadata"]["name"])


class ChaosMonkey(Reconciler):
    """Evicts one pod in five, again and again."""

    frequency = 0.2
    operation = List("v1", "Pod")
    percent_chance_evicted = 20
    dice = random.Random(6)

    rules = ({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},)

    async def reconcile(self, pod: Resource) -> None:
        if self.dice.randrange(100) < self.percent_chance_evicted:
            metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
            await self.client.create(POD, eviction, subresource="eviction")


class MyCustomResource(Reconciler):
    """Notes every object of a CRD."""

    frequency = 0.2
    operation = List(f"{GROUP}/v1", "MyCustomResourceDef", plural="mycustomresourcedefs", scope=Scope.NAMESPACED)
    seen: list[str]

    async def reconcile(self, resource: Resource) -> None:
        self.seen.append(resource["metadata"]["name"])


def crd() -> Resource:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "MyCustomResourceDef", "plural": "mycustomresourcedefs", "singular": "mycustomresourcedef"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"mycustomresourcedefs.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def is_eviction(request: ProxiedRequest) -> bool:
    return request.method == "POST" and request.path.endswith("/eviction")


async def test_the_pod_printer_prints_the_pods_of_its_namespace_at_each_tick(
    sandbox: Sandbox, told: Heard, capsys: pytest.CaptureFixture[str]
) -> None:
    async with place(sandbox, PodPrinter.all_rules()) as here:
        for name in ("a", "b", "c"):
            here.pod(name)
        async with running(PodPrinter(here.client, namespaces=(here.namespace,)).run):
            await until(lambda: len(told.of("bonny.reconciler.run.finished")) >= 2)
        rounds = len(told.of("bonny.reconciler.run.finished"))

    assert told.names[:2] == ["bonny.reconciler.initialized", "bonny.reconciler.run.started"]
    printed = capsys.readouterr().out.splitlines()
    assert set(printed) == {"Pod a", "Pod b", "Pod c"}
    assert printed.count("Pod a") in (rounds, rounds + 1)


async def test_the_chaos_monkey_evicts_pods_by_the_eviction_subresource(sandbox: Sandbox, told: Heard) -> None:
    names = {f"p{number:02}" for number in range(20)}
    async with place(sandbox, ChaosMonkey.all_rules()) as here:
        for name in names:
            here.pod(name)
        monkey = ChaosMonkey(here.client, namespaces=(here.namespace,))

        await monkey.run_once()
        survivors = here.pods()
        assert 0 < len(survivors) < 20
        assert here.proxy.count(is_eviction) == 20 - len(survivors)

        async with running(monkey.run):
            await until(lambda: not here.pods())
        assert here.proxy.count(is_eviction) == 20, "each was evicted once"
    assert not told.of("bonny.reconciler.reconcile.failed")


async def test_a_pod_with_a_node_waits_for_its_kubelet_after_an_eviction(sandbox: Sandbox) -> None:
    """What the monkey's users see: an eviction is a graceful deletion, not the end of the pod."""

    class Always(ChaosMonkey):
        percent_chance_evicted = 100

    async with place(sandbox, Always.all_rules()) as here:
        here.pod("bound", node="n1")
        await Always(here.client, namespaces=(here.namespace,)).run_once()
        live = sandbox.get("v1", "Pod", "bound", namespace=here.namespace)

    assert live is not None
    assert live["metadata"]["deletionTimestamp"]
    assert [known["reason"] for known in live["status"]["conditions"]] == ["EvictionByEvictionAPI"]


async def test_every_object_of_a_crd_is_reconciled_page_by_page(
    sandbox: Sandbox, told: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "LIST_PAGE", 7)
    names = [f"m{number:02}" for number in range(17)]
    async with place(sandbox, MyCustomResource.all_rules()) as here:
        reconciler = MyCustomResource(here.client, namespaces=(here.namespace,))
        reconciler.seen = []

        async with running(reconciler.run):
            failed = await until(lambda: told.of("bonny.reconciler.fetch.failed"))
            sandbox.apply(crd())
            for name in names:
                metadata = {"name": name, "namespace": here.namespace}
                sandbox.apply({"apiVersion": f"{GROUP}/v1", "kind": "MyCustomResourceDef", "metadata": metadata})
            await until(lambda: set(reconciler.seen) == set(names))
            told.events.clear()
            (fetched, *_) = await until(lambda: told.of("bonny.reconciler.fetch.succeeded"))
            counted = fetched.measurements["resources"]
        asked = here.proxy.count(lambda request: is_list(request) and bool(request.query.get("continue")))
        sandbox.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd()["metadata"]["name"])

    assert isinstance(failed[0].metadata["error"], Refusal), "a kind that is not served yet is no reason to end"
    assert failed[0].metadata["error"].status == 404
    assert counted == 17
    assert asked >= 2


async def test_a_server_that_fails_a_fetch_is_asked_again_at_the_next_tick(
    sandbox: Sandbox, told: Heard, capsys: pytest.CaptureFixture[str]
) -> None:
    async with place(sandbox, PodPrinter.all_rules()) as here:
        here.pod("a")
        here.proxy.add(Fault(Respond(503), on=is_list, times=2))
        async with running(PodPrinter(here.client, namespaces=(here.namespace,)).run):
            await until(lambda: told.of("bonny.reconciler.reconcile.succeeded"))

    assert [event.metadata["error"].status for event in told.of("bonny.reconciler.fetch.failed")] == [503, 503]
    assert told.names[-1] == "bonny.reconciler.genserver.down"
    assert "Pod a" in capsys.readouterr().out


async def test_without_the_rules_of_its_handler_each_object_fails_and_the_run_goes_on(
    sandbox: Sandbox, told: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    class Always(ChaosMonkey):
        percent_chance_evicted = 100
        rules = ()

    async with place(sandbox, Always.all_rules()) as here:
        for name in ("a", "b"):
            here.pod(name)
        await Always(here.client, namespaces=(here.namespace,)).run_once()
        assert here.pods() == {"a", "b"}

    failed = told.of("bonny.reconciler.reconcile.failed")
    assert {event.metadata["object"] for event in failed} == {f"{here.namespace}/a", f"{here.namespace}/b"}
    assert all(isinstance(event.metadata["error"], Forbidden) for event in failed)
    assert told.of("bonny.reconciler.run.finished")[0].measurements["failed"] == 2
    assert {record.getMessage() for record in caplog.records} == {"reconciler failed for an object"}
