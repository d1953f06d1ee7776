"""Manifest: what is in it, in which order, and how it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bonny import Axn, Controller
from bonny.api import Field, Spec, Status, Version
from bonny.core.lease import LeaseTiming
from bonny.deploy import Deploy
from bonny.errors import UsageError
from bonny.kinds import Owned
from bonny.operator import Operator
from bonny.resource import Resource
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.manifest.command import write

IMAGE = "registry.example.com:5000/widgets-operator:1.0.0"


class WidgetSpec(Spec):
    """What the user wants.

    In more than one line.
    """

    size: int = Field(1, ge=1)


class WidgetStatus(Status):
    """What the operator reports."""


class Widget(Version):
    """A thing of some size."""

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec
    status: WidgetStatus


class WidgetController(Controller[Widget]):
    """It creates ConfigMaps."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        """Not called here."""


def declared(**options: Any) -> Operator:
    """An operator without the steps that prune and finalize, which take more permissions (test_rbac)."""
    given = {"name": "widgets-operator", "group": "example.com", "controllers": [WidgetController], "steps": ()}
    return Operator(**{**given, **options})


def objects(operator: Operator | None = None, **options: Any) -> dict[str, Resource]:
    """The objects of a manifest by kind, in their order; the roles of people have tests of their own (test_roles)."""
    parts = yaml.safe_load_all(to_yaml(documents(operator or declared(), **options)))
    return {part["kind"]: part for part in parts if "aggregate-to-" not in str(part["metadata"]["labels"])}


def pod(operator: Operator | None = None, **options: Any) -> Resource:
    """The pod of the Deployment."""
    spec: Resource = objects(operator, image=IMAGE, **options)["Deployment"]["spec"]["template"]["spec"]
    return spec


def test_each_object_comes_after_what_it_refers_to() -> None:
    assert list(objects(image=IMAGE)) == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "NetworkPolicy",
        "Service",
        "Deployment",
    ]


def test_an_operator_of_one_namespace_gets_no_cluster_role() -> None:
    assert list(objects(declared(watch="namespace"), image=IMAGE))[3:5] == ["Role", "RoleBinding"]


@pytest.mark.parametrize("options", [{}, {"image": IMAGE, "local": True}])
def test_without_an_image_or_for_local_work_there_is_no_deployment(options: dict[str, Any]) -> None:
    assert "Deployment" not in objects(**options)


def test_everything_is_in_the_namespace_of_the_operator_by_default() -> None:
    found = objects(declared(watch="namespace"), image=IMAGE)

    assert found["Namespace"]["metadata"]["name"] == "widgets-operator"
    assert {found[kind]["metadata"]["namespace"] for kind in ("ServiceAccount", "Role", "Deployment")} == {
        "widgets-operator"
    }


def test_another_namespace_is_used_throughout() -> None:
    text = to_yaml(documents(declared(watch="namespace"), image=IMAGE, namespace="elsewhere"))

    assert "namespace: widgets-operator" not in text
    assert "name: elsewhere" in text


def test_the_role_is_bound_to_the_service_account_of_the_pod() -> None:
    found = objects(image=IMAGE)

    assert found["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "widgets-operator", "namespace": "widgets-operator"}
    ]
    assert found["ClusterRoleBinding"]["roleRef"]["name"] == found["ClusterRole"]["metadata"]["name"]
    assert pod()["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]


def test_everything_carries_the_recommended_labels() -> None:
    for each in objects(image=IMAGE).values():
        assert (
            each["metadata"]["labels"].items()
            >= {
                "app.kubernetes.io/name": "widgets-operator",
                "app.kubernetes.io/component": "operator",
                "app.kubernetes.io/managed-by": "bonny",
            }.items()
        )


def test_the_namespace_enforces_the_restricted_profile() -> None:
    labels = objects()["Namespace"]["metadata"]["labels"]

    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert labels["pod-security.kubernetes.io/warn"] == "restricted"


def test_only_the_pod_of_the_operator_gets_the_token() -> None:
    assert objects()["ServiceAccount"]["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is True


def test_the_pod_is_as_closed_as_it_can_be() -> None:
    (container,) = pod()["containers"]

    assert pod()["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod()["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert container["volumeMounts"] == [{"name": "tmp", "mountPath": "/tmp"}]
    assert container["resources"] == {
        "limits": {"cpu": "200m", "memory": "200Mi", "ephemeral-storage": "1Gi"},
        "requests": {"cpu": "200m", "memory": "200Mi", "ephemeral-storage": "64Mi"},
    }


def test_the_pod_is_probed() -> None:
    (container,) = pod()["containers"]
    (port,) = container["ports"]

    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": port["name"]}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port["name"]}


@pytest.mark.parametrize(
    ("operator", "seconds"),
    [
        (declared(), 35),  # handlers 25, what follows them 4.5, and 5 for half a renew deadline
        (declared(deploy=Deploy(leader_election=False)), 30),
        (declared(grace=0.0, deploy=Deploy(leader_election=False)), 5),
        (declared(lease=LeaseTiming(lease_duration=60, renew_deadline=40.0, retry_period=8.0)), 50),
    ],
)
def test_the_pod_has_time_to_end_in_order(operator: Operator, seconds: int) -> None:
    assert pod(operator)["terminationGracePeriodSeconds"] == seconds


def test_replicas_stand_on_different_nodes_where_there_are_several() -> None:
    (constraint,) = pod(declared(deploy=Deploy(replicas=2)))["topologySpreadConstraints"]

    assert (constraint["topologyKey"], constraint["whenUnsatisfiable"]) == ("kubernetes.io/hostname", "ScheduleAnyway")
    assert (
        constraint["labelSelector"]
        == objects(declared(deploy=Deploy(replicas=2)), image=IMAGE)["Deployment"]["spec"]["selector"]
    )
    assert "topologySpreadConstraints" not in pod()


def test_without_a_lease_two_replicas_never_run_at_once() -> None:
    spec = objects(declared(deploy=Deploy(leader_election=False)), image=IMAGE)["Deployment"]["spec"]

    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_with_a_lease_the_new_replica_is_ready_before_the_old_one_goes() -> None:
    spec = objects(declared(deploy=Deploy(replicas=2)), image=IMAGE)["Deployment"]["spec"]

    assert (spec["replicas"], spec["strategy"]["type"]) == (2, "RollingUpdate")
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert spec["template"]["metadata"]["labels"].items() >= spec["selector"]["matchLabels"].items()


@pytest.mark.parametrize(("watch", "value"), [("all", "__ALL__"), ("namespace", "elsewhere")])
def test_the_operator_is_told_where_it_is_and_what_it_watches(watch: str, value: str) -> None:
    (container,) = pod(operator=declared(watch=watch), namespace="elsewhere")["containers"]
    env = {
        entry["name"]: entry.get("value") or entry["valueFrom"]["fieldRef"]["fieldPath"] for entry in container["env"]
    }

    assert env == {
        "BONNY_POD_NAME": "metadata.name",
        "BONNY_POD_NAMESPACE": "metadata.namespace",
        "BONNY_POD_SERVICE_ACCOUNT": "spec.serviceAccountName",
        "BONNY_WATCH_NAMESPACE": value,
        "BONNY_LEADER_ELECTION": "true",
        "BONNY_HTTP_PORT": "8080",
        "BONNY_LOG_FORMAT": "json",
    }


def test_services_of_the_namespace_add_no_settings() -> None:
    """Regression: a Service called bonny-x gave the pod an unknown BONNY_X_SERVICE_HOST."""
    assert pod()["enableServiceLinks"] is False


def test_a_manifest_is_the_same_every_time_and_short() -> None:
    texts = {to_yaml(documents(declared(), image=IMAGE)) for _ in range(3)}

    (text,) = texts
    assert len(text.splitlines()) < 300
    assert "&id" not in text


def test_a_text_of_several_lines_is_a_block() -> None:
    assert "description: |-\n" in to_yaml(documents(declared()))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
)


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_whatever_is_written_is_read_as_it_was(resource: Resource) -> None:
    assert yaml.safe_load(to_yaml([resource])) == resource


def test_rules_and_ports_stand_in_one_line_and_texts_of_several_do_not() -> None:
    rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]}
    port = {"port": 8080, "text": "one\ntwo\n"}

    assert to_yaml([{"rules": [rule], "ports": [port]}]) == (
        "rules:\n  - {apiGroups: [apps], resources: [deployments], verbs: [get, list]}\n"
        "ports:\n  - port: 8080\n    text: |\n      one\n      two\n"
    )


@pytest.mark.parametrize("text", ["1e3", "0o7", "0x1f", "1_000", "1.5", "yes", "null", "", "~", "2024-01-01", "inf"])
def test_a_string_stays_a_string(text: str) -> None:
    """Regression: Kubernetes reads a bare 1e3 as a number, PyYAML does not quote it."""
    written = to_yaml([{"a": text, "b": {"c": text}, "d": [text]}])

    assert yaml.safe_load(written) == {"a": text, "b": {"c": text}, "d": [text]}
    assert written == f"a: '{text}'\nb: {{c: '{text}'}}\nd: ['{text}']\n"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"image": "Not An Image"}, "'Not An Image' is not a container image"),
        ({"image": ""}, "'' is not a container image"),
        ({"namespace": "No_Namespace"}, "'No_Namespace' is not a namespace"),
        ({"namespace": ""}, "'' is not a namespace"),
        ({"namespace": "default"}, "cannot be deployed to default: .*--namespace widgets-operator"),
        ({"namespace": "kube-system"}, "cannot be deployed to kube-system"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_before(options: dict[str, str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        to_yaml(documents(declared(), **options))


def test_a_manifest_goes_to_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write("text\n", "-")

    assert capsys.readouterr().out == "text\n"


def test_a_manifest_goes_to_manifest_yaml_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    write("text\n")

    assert Path("manifest.yaml").read_text(encoding="utf-8") == "text\n"


def test_a_manifest_replaces_the_one_before(tmp_path: Path) -> None:
    target = tmp_path / "out.yaml"
    target.write_text("a much longer text\n", encoding="utf-8")

    write("text\n", str(target))

    assert target.read_text(encoding="utf-8") == "text\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.yaml"]


def folder_missing(tmp_path: Path) -> Path:
    return tmp_path / "missing" / "out.yaml"


def folder_in_the_way(tmp_path: Path) -> Path:
    target = tmp_path / "out.yaml"
    target.mkdir()
    return target


@pytest.mark.parametrize("place", [folder_missing, folder_in_the_way])
def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(
    place: Callable[[Path], Path], tmp_path: Path
) -> None:
    target = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(UsageError, match=r"the manifest cannot be written to .*out\.yaml \(.*\): name another file"):
        write("text\n", str(target))

    assert sorted(tmp_path.rglob("*")) == before
