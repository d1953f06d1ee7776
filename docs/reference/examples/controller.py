"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test.

More of them, whole operators: [examples](../../examples/README.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession

import bonny
import examples
from bonny import Axn, Controller, Deploy, Kind, Operator, Owned, Resource, Retry, Scope, Terminal, Throttled, Wait
from bonny.api import Model
from bonny.errors import OptionError
from bonny.kinds import Related
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox
from docs.reference.examples.widgets import GROUP, Widget, applied, config_map, widget
from examples.hello import Greeting, GreetingController
from tests.support.serving import serving


async def controller() -> None:
    class Metadata(Model):
        labels: dict[str, str]

    class Labelled(Model):
        metadata: Metadata

    def skip_system_pods(axn: Axn[Any]) -> None:
        if axn.key.namespace == "kube-system":
            axn.halt()

    class PodController(Controller[Any]):
        resource = Kind("v1", "Pod", label_selector="app")
        schema = Labelled
        steps = (skip_system_pods,)
        owns = (Owned("v1", "ConfigMap"),)
        related = (Related("v1", "Node", named_by=lambda pod: [pod["spec"].get("nodeName", "")]),)
        rules = ({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},)
        reconcile_every = 3600.0
        max_concurrent = 4
        timeout = 10.0
        restart = "transient"
        shutdown_timeout = 5.0

        async def reconcile(self, axn: Axn[Any]) -> None:
            axn.register_descendant(config_map(f"{axn.key.name}-labels", **axn.resource["metadata"]["labels"]))

    pod: Resource = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "uid": "u-1", "labels": {"app": "web"}},
        "spec": {},
    }
    axn = await testing.handle(PodController, pod)
    testing.assert_descendant(axn, "ConfigMap", "web-labels", data={"app": "web"})


# --- what users define ------------------------------------------------------------------------------------------------


async def reconcile() -> None:
    class Publishes(Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.register_descendant(config_map("size", size=str(axn.spec.size)))

    for action in ("add", "modify", "reconcile"):
        axn = await testing.handle(Publishes, widget(size=3), action=action)
        testing.assert_descendant(axn, "ConfigMap", "size", data={"size": "3"})


async def add() -> None:
    class Greets(Controller[Widget]):
        async def add(self, axn: Axn[Widget]) -> None:
            axn.success_event(reason="Welcome")

    testing.assert_event(await testing.handle(Greets, widget(), action="add"), "Welcome")
    testing.assert_no_event(await testing.handle(Greets, widget(), action="modify"))


async def modify() -> None:
    class Counts(Controller[Widget]):
        async def modify(self, axn: Axn[Widget]) -> None:
            axn.update_status(lambda status: {**status, "size": axn.spec.size})

        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.set_condition("Ready", True)

    testing.assert_status(await testing.handle(Counts, widget(size=3), action="modify"), size=3)
    testing.assert_condition(await testing.handle(Counts, widget(size=3), action="add"), "Ready")


async def finalize() -> None:
    buckets: dict[str, str] = {}

    class Buckets(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            buckets.setdefault(axn.uid, "empty")

        async def finalize(self, axn: Axn[Widget]) -> None:
            if buckets.get(axn.uid) == "in use":
                raise Retry("the bucket is in use", after=5.0)
            buckets.pop(axn.uid, None)  # also when it is called again

    await testing.handle(Buckets, widget())
    await testing.handle(Buckets, widget(), action="finalize")
    assert buckets == {}


async def delete() -> None:
    gone = []

    class Notes(Controller[Widget]):
        async def delete(self, axn: Axn[Widget]) -> None:
            gone.append((axn.key.name, axn.spec.size))

    await testing.handle(Notes, widget("w1", size=3), action="delete")
    assert gone == [("w1", 3)]


async def lifespan() -> None:
    class WidgetController(Controller[Widget]):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            async with ClientSession("https://parts.example.com") as self.session:
                yield

        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.set_condition("Ready", not self.session.closed)

    testing.assert_condition(await testing.handle(WidgetController, widget()), "Ready", True)


def configured() -> None:
    class Publishes(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.set_condition("Ready", True, message=self.options["greeting"])

    once_an_hour = Publishes.configured(reconcile_every=3600.0, options={"greeting": "hello"})
    operator = Operator(name="widgets", group=GROUP, controllers=[once_an_hour])
    assert operator.controllers[0].reconcile_every == 3600.0
    with pytest.raises(OptionError, match="controllers have no such attribute"):
        Publishes.configured(reconcile_often=True)


# --- besides ----------------------------------------------------------------------------------------------------------


def discover() -> None:
    found = bonny.discover(examples)  # a package; in a rendered repository `controllers`, and `api` for versions
    assert GreetingController in found
    assert Greeting in found


def kind() -> None:
    assert Kind("apps/v1", "Deployment").plural == "deployments"
    crontabs = Kind("stable.example.com/v1", "CronTab", plural="crontabs", scope=Scope.NAMESPACED)
    assert crontabs.resource == "crontabs.stable.example.com"


async def owned() -> None:
    class Backups(Controller[Widget]):
        owns = (Owned("v1", "ConfigMap"), Owned("v1", "PersistentVolumeClaim", prune=False))

        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.register_descendant(config_map("settings"))

    claim: Resource = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    observed = [testing.child_of(widget(), child) for child in (claim, config_map("former"))]
    axn = await testing.handle(Backups, widget(), observed=observed)
    testing.assert_pruned(axn, "ConfigMap", "former")
    testing.assert_pruned(axn, "PersistentVolumeClaim")


def related(sandbox: Sandbox) -> None:
    class Guarded(Controller[Widget]):
        related = (Related("v1", "Secret", named_by=lambda widget: [widget["spec"].get("secret") or "none"]),)

        async def reconcile(self, axn: Axn[Widget]) -> None:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": axn.spec.secret}}
            axn.set_condition("Ready", axn.observed(secret) is not None)

    def is_ready() -> bool:
        live = sandbox.get(f"{GROUP}/v1", "Widget", "guarded") or {}
        return "True" in [each["status"] for each in live["status"]["conditions"] if each["type"] == "Ready"]

    with serving(Operator(name="guarded", group=GROUP, controllers=[Guarded]), sandbox.kubeconfig):
        sandbox.apply(applied("guarded", secret="key"))
        sandbox.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})
        sandbox.eventually(is_ready)


async def retry() -> None:
    class Waits(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            if axn.spec.size > 50:
                raise Retry("the disk is being enlarged", after=10.0)

    with pytest.raises(Retry, match="enlarged"):
        await testing.handle(Waits, widget(size=60))


async def throttled() -> None:
    class WidgetController(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            raise Throttled("429 from the parts catalogue", after=30)

    with pytest.raises(Throttled, match="429") as raised:
        await testing.handle(WidgetController, widget())
    assert raised.value.after == 30


async def wait() -> None:
    class Waits(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            if axn.spec.size > 50:
                raise Wait("the disk is being enlarged", after=10.0)

    axn = await testing.handle(Waits, widget(size=60))
    assert axn.waiting == "the disk is being enlarged"
    testing.assert_requeued(axn, after=10.0)


def is_ready() -> None:
    job: Resource = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migration"}}
    assert not bonny.is_ready(job)
    assert bonny.is_ready({**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}})


async def terminal() -> None:
    class Refuses(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            if axn.spec.secret == "":
                raise Terminal("a widget without a secret cannot be made")

    with pytest.raises(Terminal, match="without a secret"):
        await testing.handle(Refuses, widget())


def operator() -> None:
    class WidgetController(Controller[Widget]):
        async def reconcile(self, axn: Axn[Widget]) -> None:
            axn.set_condition("Ready", True)

    operator = Operator(name="widgets-operator", group=GROUP, controllers=[WidgetController])
    assert operator.crds == (Widget,)


def deploy() -> None:
    two = Deploy(replicas=2, labels={"example.com/team": "tools"})
    operator = Operator(name="widgets-operator", group=GROUP, deploy=two)
    assert operator.deploy.leader_election
