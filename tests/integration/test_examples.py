"""The examples: each does what it says, with no more permissions than those of its manifest.

E1 of the fault catalogue: at rest no write is sent, neither by a period nor by a restart.
"""

from __future__ import annotations

import importlib
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from bonny import Kind, Operator, Resource
from bonny.engine.reconcile import Reconcile
from bonny.events import EVENT
from bonny.resource import MANAGED_BY, identify
from bonny.scheduler import Scheduler
from bonny_dev.manifest import bundle
from bonny_dev.manifest.rbac import permissions
from bonny_dev.sandbox import Sandbox, SandboxError
from bonny_dev.testing import record_permissions
from bonny_dev.testing.faults import FaultProxy, ProxiedRequest, is_write
from tests.conftest import Start
from tests.support.dns import served_dns
from tests.support.serving import Serving, serving
from tests.support.things import condition_of

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
NAMES: Final = sorted(path.stem for path in EXAMPLES.glob("*.py"))
# What they handle passes through no pipeline, and nothing is done by the clock.
SCHEDULERS: Final = ("cheap_node", "gpu_node", "random_node")
MERGE: Final = "application/merge-patch+json"
# Ten hours by default.
PERIOD_SECONDS: Final = 0.3
# Longer than a period, so that one has passed in it.
QUIET_SECONDS: Final = 1.0


class Stage:
    """One example on the API server: what its manifest and its sample hold is there, and it can be run."""

    def __init__(self, sandbox: Sandbox, name: str, **attributes: Any) -> None:
        """`attributes` replace those of its controllers."""
        self.sandbox = sandbox
        self.example = importlib.import_module(f"examples.{name}")
        self.operator: Operator = self.example.operator
        self.samples: list[Resource] = list(yaml.safe_load_all((EXAMPLES / "samples" / f"{name}.yaml").read_text()))
        self.processed: Counter[str] = Counter()
        """How often each object passed through the pipeline and did not fail."""

        self.dns: Any = None
        """The external API, for the example that has one."""

        self._attributes = attributes
        self._made: dict[str, Resource] = {}
        self._plurals = {(kind.api_version, kind.kind): kind.plural for kind in self._kinds()}
        sandbox.apply(bundle.documents(self.operator, image=None, namespace=self.operator.name, local=True))
        self.proxy = FaultProxy(sandbox, token=sandbox.service_account_token(self.operator.name, self.operator.name))

    def _kinds(self) -> list[Kind]:
        return [kind for controller in self.operator.controllers for kind in controller.kinds(self.operator.group)]

    # --- running ------------------------------------------------------------------------------------------------------

    @contextmanager
    def running(self, *, leader_election: bool = False, **attributes: Any) -> Iterator[Serving]:
        """The operator at work; `attributes` replace those of its controllers."""
        given = self.operator
        controllers = [known.configured(**self._attributes, **attributes) for known in given.controllers]
        counted = Operator(
            name=given.name,
            group=given.group,
            controllers=[*controllers, *given.parts],
            crds=given.crds,
            steps=(self._count, *given.steps),
        )
        settings = {"leader_election": leader_election, "pod_namespace": given.name}
        with serving(counted, self.proxy.kubeconfig, **settings) as at_work:
            yield at_work

    def _count(self, axn: Reconcile[Any]) -> None:
        axn.at_end(self._note)

    def _note(self, axn: Reconcile[Any]) -> None:
        if axn.failure is None:
            self.processed[identify(axn.resource)] += 1

    # --- objects ------------------------------------------------------------------------------------------------------

    def apply(self, *resources: Resource) -> None:
        for resource in self.sandbox.apply(resources):
            self._made[identify(resource)] = resource

    def get(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> Any:
        """Its type is `Any`, so that what is missing becomes a `TypeError`, which `eventually` waits out."""
        return self.sandbox.get(api_version, kind, name, namespace=namespace)

    def node_of(self, pod: str) -> str:
        """Where it is bound to; empty while it waits."""
        node: str = self.get("v1", "Pod", pod)["spec"].get("nodeName", "")
        return node

    def delete(self, resource: Resource) -> None:
        """At once, also a Pod that has a node: no kubelet says that it has ended."""
        name = resource["metadata"]["name"]
        path = self.sandbox.path_of(resource["apiVersion"], resource["kind"], namespace="default", name=name)
        answer = self.sandbox.request("DELETE", path, {"gracePeriodSeconds": 0})
        assert answer.status in (200, 202), answer.body

    def patch(self, path: str, change: Resource) -> None:
        answer = self.sandbox.request("PATCH", path, change, content_type=MERGE)
        assert answer.status == 200, answer.body

    def eventually(self, check: Any, *, within_seconds: float = 15.0) -> Any:
        return self.sandbox.eventually(check, within_seconds=within_seconds)

    def clean(self) -> None:
        """Remove what was made, with whatever finalizers it has."""
        mine = f"{MANAGED_BY}={self.operator.name}"
        owned = {owned for controller in self.operator.controllers for owned in controller.owns}
        children = [child for kind in owned for child in self._children(kind, label_selector=mine)]
        for resource in [*self._made.values(), *children]:
            metadata = resource["metadata"]
            path = self.sandbox.path_of(
                resource["apiVersion"], resource["kind"], namespace=metadata.get("namespace"), name=metadata["name"]
            )
            self.sandbox.request("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
            self.sandbox.request("DELETE", path, {"gracePeriodSeconds": 0})

    def _children(self, kind: Kind, *, label_selector: str) -> list[Resource]:
        return self.sandbox.items(kind.api_version, kind.kind, label_selector=label_selector)

    # --- rest ---------------------------------------------------------------------------------------------------------

    def writes(self, *, since: float) -> list[str]:
        """What the operator wrote, for the message of a test that fails."""
        return [told(request) for request in self.proxy.requests if is_write(request) and request.time >= since]

    def refused(self) -> list[str]:
        """What it was not permitted to do."""
        return [told(request) for request in self.proxy.requests if request.status in (401, 403)]

    def until_quiet(self) -> None:
        """Return when every sample was handled or scheduled, and nothing was written for longer than a period."""
        if self.operator.controllers:
            self.eventually(lambda: all(self.processed[identify(made)] for made in self._made.values()))
        if self.operator.of(Scheduler):
            pods = [made["metadata"]["name"] for made in self._made.values() if made["kind"] == "Pod"]
            self.eventually(lambda: pods and all(map(self.node_of, pods)))
        self.eventually(lambda: not self.writes(since=time.monotonic() - QUIET_SECONDS))

    def until_gone(self) -> None:
        """Return when the samples are gone, as far as it is the operator's to let them, and nothing is written."""
        for made in self._made.values():
            place = made["metadata"].get("namespace") or ""
            like = (made["apiVersion"], made["kind"], made["metadata"]["name"])
            self.eventually(lambda like=like, place=place: self.is_gone(*like, namespace=place))
        self.eventually(lambda: not self.writes(since=time.monotonic() - QUIET_SECONDS))

    def is_gone(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> bool:
        """Whether there is no such object. Deleted volumes go meanwhile, as with the controllers of Kubernetes."""
        for volume in self.sandbox.items("v1", "PersistentVolume"):
            if "deletionTimestamp" in volume["metadata"]:
                self.patch(
                    f"/api/v1/persistentvolumes/{volume['metadata']['name']}", {"metadata": {"finalizers": None}}
                )
        return self.get(api_version, kind, name, namespace=namespace) is None

    def for_periods(self, number: int) -> None:
        """Return when every sample was handled so many times more."""
        before = self.processed.copy()
        self.eventually(
            lambda: all(self.processed[name] >= before[name] + number for name in self._made), within_seconds=30.0
        )


def told(request: ProxiedRequest) -> str:
    return f"{request.method} {request.path} {request.status}"


@pytest.fixture
def stage(request: pytest.FixtureRequest, sandbox: Sandbox, tmp_path: Path) -> Iterator[Stage]:
    """The example that the test is marked with."""
    name = request.param
    attributes = {"options": {"root": str(tmp_path)}} if name == "finalizer" else {}
    with served_dns() if name == "dns_record" else nullcontext() as dns:
        made = Stage(sandbox, name, **attributes)
        made.dns = dns
        with made.proxy:
            yield made
            made.clean()


def example(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("stage", [name], indirect=True)


def lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    """What was logged with that message."""
    return [vars(record) for record in caplog.records if record.getMessage() == message]


@pytest.fixture(autouse=True)
def _verbose(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="examples")


# --- all --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", sorted({*NAMES} - {*SCHEDULERS}), indirect=True)
def test_e1_an_example_at_rest_writes_nothing_and_a_restart_neither(stage: Stage) -> None:
    stage.apply(*stage.samples)
    with stage.running(reconcile_every=PERIOD_SECONDS):
        stage.until_quiet()
        rested = time.monotonic()
        stage.for_periods(3)
        assert stage.writes(since=rested) == []
    restarted = time.monotonic()
    with stage.running(reconcile_every=PERIOD_SECONDS):
        stage.for_periods(2)
    assert stage.writes(since=restarted) == []
    assert stage.refused() == [], "the manifest grants what the example does"


@pytest.mark.parametrize("stage", SCHEDULERS, indirect=True)
def test_e1_a_scheduler_at_rest_writes_nothing_and_a_restart_neither(stage: Stage) -> None:
    stage.apply(*stage.samples)
    pod = stage.samples[-1]
    with stage.running():
        stage.eventually(lambda: stage.node_of(pod["metadata"]["name"]))
        stage.until_quiet()
    restarted = time.monotonic()
    with stage.running():
        stage.apply({**pod, "metadata": {"name": "late"}})
        stage.eventually(lambda: stage.node_of("late") and len(stage.writes(since=restarted)) == 2)
        stage.until_quiet()
    event, binding = sorted(stage.writes(since=restarted))
    assert re.fullmatch(r"PATCH /apis/events\.k8s\.io/v1/namespaces/default/events/late\.[0-9a-f]{16} 201", event)
    assert binding == "POST /api/v1/namespaces/default/pods/late/binding 201"
    assert stage.refused() == [], "the manifest grants what the example does"


@pytest.mark.parametrize("stage", NAMES, indirect=True)
def test_an_example_asks_for_what_its_manifest_grants_and_for_nothing_else(stage: Stage) -> None:
    """Promise 9. It runs as the ServiceAccount of its manifest, with a lease, and RBAC decides.

    Three things it may do and need not: report an event, delete a child that its handler registers no more, and say of
    a pod that no node takes it.
    """
    samples = stage.samples
    if stage.operator.name == "workspaces":
        # A Namespace that was deleted never goes here, so each name of one is used once.
        samples = [{**sample, "metadata": {"name": "recorded"}} for sample in samples]
    with record_permissions() as recorder:
        stage.apply(*samples)
        with stage.running(leader_election=True):
            stage.until_quiet()
            for sample in samples:
                stage.delete(sample)
            stage.until_gone()
    refused = [told(request) for request in stage.proxy.requests if request.status in (401, 403)]
    assert refused == []
    compared = recorder.compared_with_manifest(stage.operator)
    assert compared.missing == {}, str(compared)
    owned = {(kind.group, kind.plural) for controller in stage.operator.controllers for kind in controller.owns}
    needless = {
        str(unused)
        for unused in permissions(compared.unused)
        if (unused.group, unused.resource) != (EVENT.group, EVENT.plural)
        and (unused.verb != "delete" or (unused.group, unused.resource) not in owned)
        and (unused.resource != "pods/status" or not stage.operator.of(Scheduler))
    }
    assert needless == set()


def test_every_example_has_a_sample_and_a_row_in_the_readme() -> None:
    assert sorted(path.stem for path in (EXAMPLES / "samples").glob("*.yaml")) == NAMES
    assert sorted(re.findall(r"^\| \[(\w+)\]\(\1\.py\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE)) == NAMES


def test_an_example_runs_by_one_command(start_operator: Start) -> None:
    at_work = start_operator([sys.executable, "-m", "invoke", "example", "hello"], cwd=EXAMPLES.parent)
    at_work.wait_ready(within_seconds=60.0)
    assert "installed greetings.hello.example.com" in at_work.text
    assert at_work.stop()[0] == 0


def test_an_example_that_is_not_there_is_told_in_one_sentence(start_operator: Start) -> None:
    missing = start_operator([sys.executable, "-m", "invoke", "example", "goodbye"], cwd=EXAMPLES.parent)
    assert missing.process.wait(30) == 2
    (sentence,) = missing.text.strip().splitlines()
    assert sentence == f"there is no example 'goodbye': take one of {', '.join(NAMES)}"


# --- 000 --------------------------------------------------------------------------------------------------------------


@example("cog")
def test_a_cog_says_what_happens_to_it(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    def said() -> list[str]:
        return [line["action"] for line in lines(caplog, "cog")]

    (cog,) = stage.samples
    with stage.running(reconcile_every=PERIOD_SECONDS):
        stage.apply(cog)
        stage.eventually(lambda: "reconcile" in said())
        stage.apply({**cog, "spec": {"teeth": 9}})
        stage.eventually(lambda: "modify" in said())
        stage.delete(cog)
        stage.eventually(lambda: "delete" in said())
    assert (said()[0], said()[-1], set(said())) == ("add", "delete", {"add", "modify", "reconcile", "delete"})


@example("widget")
def test_a_widget_has_a_column_and_may_read_its_config_map(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    (widget,) = stage.samples
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "with", "namespace": "default"}}
    stage.apply(settings)
    with stage.running():
        stage.apply(widget, {**widget, "metadata": {"name": "with"}})
        stage.eventually(lambda: len(lines(caplog, "widget added")) == 2)

    found = {line["object"]: line["has_settings"] for line in lines(caplog, "widget added")}
    assert found == {"default/tested": False, "default/with": True}
    crd = stage.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.widgets.example.com")
    (version,) = crd["spec"]["versions"]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == ["Test", "Age"]


@example("hello")
def test_a_greeting_is_said_by_a_deployment_behind_a_service(stage: Stage) -> None:
    (greeting,) = stage.samples

    def live() -> Any:
        return stage.get("hello.example.com/v1", "Greeting", "hello")

    with stage.running():
        stage.apply(greeting)
        stage.eventually(lambda: condition_of(live(), "Ready") == ("False", "NotReady"))
        deployment, service = (stage.get(*kind, "hello") for kind in (("apps/v1", "Deployment"), ("v1", "Service")))
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "GREETING", "value": "Hello, world"}]
        assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
        for child in (deployment, service):
            assert [owner["kind"] for owner in child["metadata"]["ownerReferences"]] == ["Greeting"]

        up = {"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}
        stage.patch("/apis/apps/v1/namespaces/default/deployments/hello/status", up)
        stage.eventually(lambda: condition_of(live(), "Ready") == ("True", "Ready"))
        assert live()["status"]["available"] == 2

        stage.delete(service)
        stage.eventually(lambda: stage.get("v1", "Service", "hello")["metadata"]["uid"] != service["metadata"]["uid"])


@example("todo")
def test_an_app_shows_the_lists_that_it_names(stage: Stage) -> None:
    todo, app = stage.samples

    def page() -> str:
        text: str = stage.get("v1", "ConfigMap", "todos")["data"]["index.html"]
        return text

    def complete() -> tuple[str, str]:
        return condition_of(stage.get("todo.example.com/v1", "TodoApp", "todos"), "Complete")

    with stage.running():
        stage.apply(app)
        stage.eventually(lambda: complete() == ("False", "NotComplete"))
        stage.apply(todo)
        stage.eventually(lambda: page() == "This week\n[x] write an operator\n[ ] test it\n[ ] show a friend")
        stage.eventually(lambda: complete() == ("True", "Complete"))
        stage.eventually(lambda: stage.get("todo.example.com/v1", "Todo", "this-week")["status"]["open"] == 2)
        stage.apply({**todo, "spec": {**todo["spec"], "done": todo["spec"]["tasks"]}})
        stage.eventually(lambda: "[ ]" not in page())
        stage.eventually(
            lambda: condition_of(stage.get("todo.example.com/v1", "Todo", "this-week"), "Done") == ("True", "Done")
        )
        stage.delete(todo)
        stage.eventually(lambda: complete() == ("False", "NotComplete"))


@example("deployment_event_log")
def test_what_happens_to_deployments_is_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    def events() -> list[str]:
        return [line["event"] for line in lines(caplog, "deployment event") if line["object"] == "default/watched"]

    (deployment,) = stage.samples
    with stage.running(reconcile_every=PERIOD_SECONDS):
        stage.apply(deployment)
        stage.eventually(lambda: "reconcile" in events())
        stage.apply({**deployment, "spec": {**deployment["spec"], "replicas": 2}})
        stage.eventually(lambda: "modify" in events())
        stage.delete(deployment)
        stage.eventually(lambda: "delete" in events())
    assert set(events()) == {"add", "modify", "reconcile", "delete"}


# --- 003 --------------------------------------------------------------------------------------------------------------


@example("my_operator")
def test_my_operator_gets_options_and_only_pods_that_fit_its_schema(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[dict[str, Any]]:
        return [line for line in lines(caplog, "pod") if line["object"].endswith("/of-a-team")]

    def failed() -> list[dict[str, Any]]:
        return [line for line in lines(caplog, "reconcile failed") if line["object"] == "default/nobodys"]

    (pod,) = stage.samples
    nobodys = {**pod, "metadata": {"name": "nobodys"}}
    elsewhere = {**pod, "metadata": {**pod["metadata"], "namespace": "kube-system"}}
    with stage.running():
        stage.apply(nobodys, elsewhere, pod)
        stage.eventually(said)
        stage.eventually(failed)
        stage.apply({**pod, "metadata": {**pod["metadata"], "labels": {"team": "red"}}})
        stage.eventually(lambda: len(said()) == 2)
        stage.sandbox.request("DELETE", "/api/v1/namespaces/default/pods/of-a-team", {"gracePeriodSeconds": 0})
        stage.eventually(lambda: len(said()) == 3)

    assert [(line["action"], line["object"]) for line in said()] == [
        (action, "default/of-a-team") for action in ("add", "modify", "delete")
    ]
    assert [line["greeting"] for line in said()] == ["hello"] * 3
    assert [line["team"] for line in said()] == ["blue", "red", "red"]
    assert "metadata.labels" in failed()[0]["error"]
    assert not any("nobodys" in line["object"] for line in lines(caplog, "pod"))


# --- 002 --------------------------------------------------------------------------------------------------------------


@example("the_operator")
def test_one_controller_handles_a_kind_of_ours_and_deployments_of_one_namespace(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    mine, deployment = stage.samples
    elsewhere = {**deployment, "metadata": {**deployment["metadata"], "namespace": "kube-system"}}
    with stage.running():
        stage.apply(elsewhere, deployment, mine)
        stage.eventually(
            lambda: condition_of(stage.get("example.com/v1", "MyCustomResource", "mine"), "Seen") == ("True", "Seen")
        )
        stage.eventually(lambda: stage.processed["Deployment default/handled-too"])
    handled = {(line["object"], line["api_version"], line["action"]) for line in lines(caplog, "seen")}
    assert handled >= {
        ("default/mine", "example.com/v1", "MyCustomResource/add"),
        ("default/handled-too", "apps/v1", "Deployment/add"),
    }
    assert {name.partition("/")[0] for name, _, _ in handled} == {"default"}


# --- 004 --------------------------------------------------------------------------------------------------------------


@example("descendants")
def test_the_groups_of_a_workspace_come_in_order_and_go_with_it(stage: Stage) -> None:
    (workspace,) = stage.samples
    other = {**workspace, "metadata": {"name": "other"}}
    with stage.running():
        stage.apply(other)
        stage.eventually(
            lambda: condition_of(stage.get("workspaces.example.com/v1", "Workspace", "other")) == ("True", "Succeeded")
        )
        writes = [told(request) for request in stage.proxy.requests if is_write(request)]
        made = [write for write in writes if not write.startswith("PATCH /apis/workspaces")]
        assert made[0] == "PATCH /api/v1/namespaces/other-ns 201"
        assert sorted(made[1:]) == [
            "PATCH /api/v1/namespaces/other-ns/pods/other-pod 201",
            "PATCH /api/v1/persistentvolumes/other-pv 201",
        ]
        children = [
            stage.get("v1", "Namespace", "other-ns"),
            stage.get("v1", "Pod", "other-pod", namespace="other-ns"),
            stage.get("v1", "PersistentVolume", "other-pv"),
        ]
        assert not any("ownerReferences" in child["metadata"] for child in children)

        stage.delete(other)
        stage.eventually(lambda: stage.is_gone("workspaces.example.com/v1", "Workspace", "other"))
        for child in children:
            metadata = child["metadata"]
            left = stage.get("v1", child["kind"], metadata["name"], namespace=metadata.get("namespace", ""))
            # The controllers that let namespaces, pods and volumes go do not run here.
            assert left is None or left["metadata"]["deletionTimestamp"]


@example("hooks")
def test_each_hook_is_told_what_is_sent(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    (note,) = stage.samples
    with stage.running():
        stage.apply(note)
        stage.eventually(lambda: lines(caplog, "done"))
    (descendant,) = lines(caplog, "descendant is applied")
    assert [descendant[f"descendant_{word}"] for word in ("kind", "name", "namespace")] == [
        "ConfigMap",
        "short",
        "default",
    ]
    (status,) = lines(caplog, "status is applied")
    assert (status["kind"], status["object"]) == ("Note", "default/short")
    (event,) = lines(caplog, "event is emitted")
    assert (event["type"], event["reason"]) == ("Normal", "Noted")
    (done,) = lines(caplog, "done")
    assert done["succeeded"]
    names = [record.getMessage() for record in caplog.records if record.name == "examples.hooks"]
    assert names == ["descendant is applied", "status is applied", "event is emitted", "done"]


@example("finalizer")
def test_a_bucket_goes_with_its_object_and_a_copy_is_kept_if_wanted(stage: Stage, tmp_path: Path) -> None:
    (kept,) = stage.samples
    lost = {**kept, "metadata": {"name": "lost"}, "spec": {}}

    def live(name: str) -> Any:
        return stage.get("buckets.example.com/v1", "Bucket", name)

    with stage.running():
        stage.apply(kept, lost)
        folders = {}
        for name in ("kept", "lost"):
            stage.eventually(lambda name=name: live(name)["status"]["phase"] == "Made")
            folders[name] = Path(live(name)["status"]["folder"])
            (folders[name] / "file").write_text(name)
        assert live("lost")["metadata"]["finalizers"] == ["buckets.buckets.example.com/bucket-controller"]
        assert live("kept")["metadata"]["finalizers"] == [
            "buckets.example.com/copy",
            "buckets.buckets.example.com/bucket-controller",
        ]
        with pytest.raises(SandboxError, match=r"spec\.keep: .*cannot be changed"):  # its finalizer would stay
            stage.apply({**kept, "spec": {"keep": False}})

        (folders["lost"] / "in-use").touch()
        for resource in (kept, lost):
            stage.delete(resource)
        stage.eventually(lambda: live("kept") is None)
        stage.eventually(lambda: live("lost")["status"]["phase"] == "InUse")
        assert folders["lost"].exists()
        (folders["lost"] / "in-use").unlink()
        stage.eventually(lambda: live("lost") is None)
    (left,) = tmp_path.iterdir()
    assert (left.name, (left / "file").read_text()) == (f"{folders['kept'].name}.kept", "kept")


@example("dns_record")
def test_a_record_is_made_corrected_and_deleted_with_its_object_and_a_429_is_waited_out(stage: Stage) -> None:
    (shop,) = stage.samples

    def made() -> list[str]:
        return [record["addresses"][0] for record in stage.dns.records.values()]

    def reconciled() -> tuple[str, str]:
        return condition_of(stage.get("dns.example.com/v1", "DnsRecord", "shop"))

    stage.dns.too_many = 1
    with stage.running(reconcile_every=PERIOD_SECONDS):
        stage.apply(shop)
        stage.eventually(lambda: reconciled() == ("False", "Throttled"))
        stage.eventually(lambda: made() == ["203.0.113.7"])
        stage.eventually(lambda: reconciled() == ("True", "Succeeded"))

        (uid,) = stage.dns.records
        stage.dns.records[uid] = {"host": "shop.example.com", "addresses": ["198.51.100.1"]}
        stage.eventually(lambda: made() == ["203.0.113.7"])
        stage.delete(shop)
        stage.eventually(lambda: stage.dns.records == {})
        stage.until_gone()


# --- 000, schedulers --------------------------------------------------------------------------------------------------


def asking(pod: Resource, name: str, *, cpu: str) -> Resource:
    """Another pod like this one, of that size."""
    (container,) = pod["spec"]["containers"]
    containers = [{**container, "resources": {"requests": {"cpu": cpu}}}]
    return {**pod, "metadata": {"name": name}, "spec": {**pod["spec"], "containers": containers}}


@example("cheap_node")
def test_pods_go_to_a_cheap_node_or_wait_with_a_reason(stage: Stage) -> None:
    *_, pod = stage.samples
    with stage.running():
        stage.apply(*stage.samples, asking(pod, "large", cpu="4"))
        stage.eventually(lambda: stage.node_of("thrifty") == "cheap")
        stage.eventually(lambda: condition_of(stage.get("v1", "Pod", "large"), "PodScheduled")[0] == "False")

    (told,) = [known["message"] for known in stage.get("v1", "Pod", "large")["status"]["conditions"]]
    assert told == ("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were not chosen by scheduler cheap-node.")
    assert stage.node_of("large") == ""


@example("random_node")
def test_pods_go_to_any_node_but_to_none_that_is_full(stage: Stage) -> None:
    *nodes, pod = stage.samples
    wanted = [asking(pod, f"r{number}", cpu="1") for number in range(4)]
    with stage.running():
        stage.apply(*nodes, *wanted)
        stage.eventually(lambda: all(stage.node_of(f"r{number}") for number in range(4)), within_seconds=180.0)

    assert Counter(stage.node_of(f"r{number}") for number in range(4)) == {"heads": 2, "tails": 2}


@example("gpu_node")
def test_pods_go_to_nodes_with_gpus_as_their_labels_say_by_then(stage: Stage) -> None:
    plain, with_gpus, pod = stage.samples
    label = with_gpus["metadata"]["labels"]
    with stage.running():
        stage.apply(plain, with_gpus, pod)
        stage.eventually(lambda: stage.node_of("trainer") == "with-gpus")
        stage.patch("/api/v1/nodes/with-gpus", {"metadata": {"labels": dict.fromkeys(label)}})
        stage.apply(asking(pod, "later", cpu="1"))
        stage.eventually(lambda: condition_of(stage.get("v1", "Pod", "later"), "PodScheduled")[0] == "False")
        stage.patch("/api/v1/nodes/plain", {"metadata": {"labels": label}})
        stage.eventually(lambda: stage.node_of("later") == "plain")
