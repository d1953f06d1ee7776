"""Parts of a manifest that may be added or left out, labels of the user's own, and the hook that has the last word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from bonny import Deploy, FromConfigMap, FromSecret, Operator
from bonny.api import Spec, Version
from bonny.errors import OptionError, UsageError
from bonny.resource import Resource
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.manifest.deploy_checks import check_deploy
from bonny_dev.manifest.optional_objects import PARTS
from bonny_dev.manifest.rbac import CLUSTER, grants

IMAGE = "registry.example.com/widgets-operator:1.0.0"
PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "manifest.md").read_text("utf-8")
SELECTOR = {"app.kubernetes.io/name": "widgets-operator", "app.kubernetes.io/component": "operator"}


class WidgetSpec(Spec):
    """What the user wants."""


class Widget(Version):
    """A thing."""

    kind = "Widget"
    version = "v1"
    storage = True
    hub = True
    spec: WidgetSpec


def operator(**options: Any) -> Operator:
    return Operator(**{"name": "widgets-operator", "group": "example.com", "crds": [Widget], **options})


def objects(declared: Operator | None = None, **options: Any) -> dict[str, Resource]:
    """The objects of a manifest by kind, in their order; those for people are told apart from the operator's own."""
    text = to_yaml(documents(declared or operator(), **{"image": IMAGE, **options}))
    return {each["kind"] + _for_people(each): each for each in yaml.safe_load_all(text)}


def _for_people(each: Resource) -> str:
    name: str = each["metadata"]["name"]
    aggregated = any("/aggregate-to-" in label for label in each["metadata"].get("labels", {}))
    return f" {name.rpartition('-')[2]}" if aggregated else ""


def ports(rules: list[Resource]) -> set[tuple[str, int]]:
    return {(port["protocol"], port["port"]) for rule in rules for port in rule["ports"]}


def test_what_is_not_asked_for_is_not_there() -> None:
    assert {"NetworkPolicy", "Service"} <= objects().keys()
    assert not {"PodDisruptionBudget", "ServiceMonitor", "PrometheusRule", "ConfigMap"} & objects().keys()


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ("roles", "ClusterRole view"),
        ("network-policy", "NetworkPolicy"),
        ("service", "Service"),
        ("pdb", "PodDisruptionBudget"),
        ("service-monitor", "ServiceMonitor"),
        ("alerts", "PrometheusRule"),
        ("dashboards", "ConfigMap"),
    ],
)
def test_a_part_is_there_with_its_name_and_not_without(part: str, kind: str) -> None:
    assert kind in objects(include=[part])
    assert kind not in objects(operator(deploy=Deploy(replicas=2)), exclude=[part])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"replicas": "two"}, "Deploy.replicas is 'two': write a whole number"),
        ({"replicas": 0}, "Deploy.replicas is 0: use 1, or more with leader_election=True"),
        ({"replicas": 2, "leader_election": False}, "Deploy.replicas is 2: use 1, or more with leader_election=True"),
        ({"customize": "x"}, "Deploy.customize is 'x': name a function"),
        ({"secure_metrics": "yes"}, "Deploy.secure_metrics is 'yes': write True or False"),
        ({"env": {"1A": "x"}}, "Deploy.env has '1A': use letters, digits and _, and no digit first"),
        ({"env": {"": "x"}}, "Deploy.env has '': use letters"),
        ({"env": {"A\n": "x"}}, r"Deploy.env has 'A\\n': use letters"),
        ({"env": {"A": 3}}, r'Deploy.env has A=3: write text, or FromSecret\("name", "key"\)'),
        ({"env": {"A": FromSecret("s")}}, r"Deploy.env has A=FromSecret\(name='s', key=''\): write text, or"),
        ({"env_from": FromSecret("s")}, r'write a tuple, with a comma .*: env_from = \(FromSecret\("name"\),\)'),
        (
            {"env_from": (FromSecret("s", "k"),)},
            r"Deploy.env_from has FromSecret\(name='s', key='k'\): use the name of",
        ),
        ({"env": ["A"]}, r"Deploy.env is \['A'\]: write a mapping"),
        ({"egress": "10.0.0.0/8"}, "Deploy.egress is '10.0.0.0/8': write a mapping"),
        ({"egress": {"here": (1,)}}, "Deploy.egress: 'here' does not appear to be .*: write a network, for example"),
        ({"egress": {"10.0.0.1/8": (1,)}}, "Deploy.egress: 10.0.0.1/8 has host bits set: write a network"),
        ({"egress": {"10.0.0.0/8": 5432}}, r"Deploy.egress\['10.0.0.0/8'\] is 5432: write a tuple, with a comma"),
        ({"egress": {"10.0.0.0/8": ()}}, r"egress\['10.0.0.0/8'\] is \(\): write TCP ports from 1 to 65535"),
        ({"egress": {"10.0.0.0/8": (0,)}}, r"egress\['10.0.0.0/8'\] is \(0,\): write TCP ports from 1 to 65535"),
    ],
)
def test_what_is_no_number_or_function_is_refused_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        check_deploy(Deploy(**options))


@pytest.mark.parametrize("name", ["", " ", "A", "a b", "a/b", "a\n", "..", "x" * 254])
@pytest.mark.parametrize("source", [FromSecret, FromConfigMap])
def test_an_object_that_cannot_exist_is_refused(source: Any, name: str) -> None:
    with pytest.raises(OptionError, match=r"^Deploy.env has A=From.*: write text, or FromSecret"):
        check_deploy(Deploy(env={"A": source(name, "key")}))
    with pytest.raises(OptionError, match=r"^Deploy.env has A=From.*: write text, or FromSecret"):
        check_deploy(Deploy(env={"A": source("dns", name.replace("A", " ").replace("..", "").replace("x", "/"))}))
    with pytest.raises(OptionError, match=r"^Deploy.env_from has From.*: use the name of an object, without a key"):
        check_deploy(Deploy(env_from=(source(name),)))


def container_of(deploy: Deploy) -> Resource:
    (container,) = objects(operator(deploy=deploy))["Deployment"]["spec"]["template"]["spec"]["containers"]
    return cast("Resource", container)


def test_variables_are_written_as_they_are_and_references_name_their_object() -> None:
    env = {
        "DNS_URL": "https://dns.example.com",
        "PRICE": "$(DNS_URL) costs $5",
        "DNS_TOKEN": FromSecret("dns-credentials", "token"),
        "DNS_ZONE": FromConfigMap("dns", "zone"),
    }
    sources = (FromSecret("more"), FromConfigMap("settings"))
    (container,) = objects(operator(deploy=Deploy(env=env, env_from=sources)))["Deployment"]["spec"]["template"][
        "spec"
    ]["containers"]

    assert container["env"][-4:] == [
        {"name": "DNS_URL", "value": "https://dns.example.com"},
        {"name": "PRICE", "value": "$$(DNS_URL) costs $$5"},
        {"name": "DNS_TOKEN", "valueFrom": {"secretKeyRef": {"name": "dns-credentials", "key": "token"}}},
        {"name": "DNS_ZONE", "valueFrom": {"configMapKeyRef": {"name": "dns", "key": "zone"}}},
    ]
    assert container["envFrom"] == [{"secretRef": {"name": "more"}}, {"configMapRef": {"name": "settings"}}]
    plain = container_of(Deploy())
    assert "envFrom" not in plain
    assert plain["env"] == container["env"][:-4]


def test_a_variable_that_the_manifest_sets_is_refused_and_other_settings_are_not() -> None:
    with pytest.raises(OptionError, match=r"Deploy.env sets BONNY_HTTP_PORT, which the manifest sets itself: leave it"):
        objects(operator(deploy=Deploy(env={"BONNY_HTTP_PORT": "1"})))
    assert container_of(Deploy(env={"BONNY_LOG_LEVEL": "debug"}))["env"][-1] == {
        "name": "BONNY_LOG_LEVEL",
        "value": "debug",
    }


def test_networks_of_external_systems_are_opened() -> None:
    egress = {"203.0.113.0/24": (5432, 6379), "2001:db8::/32": (443,)}
    before = objects(operator())["NetworkPolicy"]["spec"]["egress"]
    found = objects(operator(deploy=Deploy(egress=egress)))["NetworkPolicy"]["spec"]["egress"]

    assert found[: len(before)] == before
    assert found[len(before) :] == [
        {
            "to": [{"ipBlock": {"cidr": "203.0.113.0/24"}}],
            "ports": [{"protocol": "TCP", "port": 5432}, {"protocol": "TCP", "port": 6379}],
        },
        {"to": [{"ipBlock": {"cidr": "2001:db8::/32"}}], "ports": [{"protocol": "TCP", "port": 443}]},
    ]


def test_a_grace_period_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(OptionError, match="grace of operator widgets-operator is '5': use 0 to 3600 seconds"):
        operator(grace="5")


def test_every_part_is_in_the_list_above() -> None:
    (marker,) = test_a_part_is_there_with_its_name_and_not_without.pytestmark

    assert [part for part, _ in marker.args[1]] == list(PARTS)


def test_the_reference_page_has_a_row_for_every_part() -> None:
    assert re.findall(r"^\| `([a-z][a-z-]*)` \|", PAGE, re.MULTILINE) == list(PARTS)


def test_the_example_of_the_reference_page_changes_the_pod() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)

    template = objects(names["operator"])["Deployment"]["spec"]["template"]

    assert template["spec"]["nodeSelector"] == {"example.com/size": "large"}
    assert template["spec"]["containers"][0]["resources"]["limits"]["memory"] == "1Gi"
    assert template["metadata"]["labels"]["example.com/team"] == "tools"


def test_several_replicas_have_a_disruption_budget() -> None:
    spec = objects(operator(deploy=Deploy(replicas=2)))["PodDisruptionBudget"]["spec"]

    assert (spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert spec["selector"] == {"matchLabels": SELECTOR}


def test_the_policy_opens_the_port_of_the_probes_and_the_way_to_the_api_server_and_dns() -> None:
    found = objects()
    spec = found["NetworkPolicy"]["spec"]
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]

    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["podSelector"] == {"matchLabels": SELECTOR}
    assert ports(spec["ingress"]) == {("TCP", container["ports"][0]["containerPort"])}
    assert ports(spec["egress"][:1]) == {("TCP", 443), ("TCP", 6443), ("TCP", 8443), ("TCP", 16443)}
    assert ports(spec["egress"][1:]) == {("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)}


def test_the_service_leads_to_the_port_of_the_probes() -> None:
    found = objects(include=["service-monitor"])
    (port,) = found["Service"]["spec"]["ports"]
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]

    assert port == {"name": "metrics", "port": 8080, "targetPort": container["ports"][0]["name"]}
    assert found["Service"]["spec"]["selector"] == SELECTOR
    assert found["Deployment"]["spec"]["template"]["metadata"]["labels"].items() >= SELECTOR.items()
    assert found["ServiceMonitor"]["spec"]["endpoints"] == [{"port": "metrics"}]
    assert found["Service"]["metadata"]["labels"].items() >= SELECTOR.items()


def test_secure_metrics_bring_their_port_certificate_and_permissions() -> None:
    found = objects(operator(deploy=Deploy(secure_metrics=True)), include=["service-monitor"])
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert {"name": "BONNY_SECURE_METRICS_PORT", "value": "8443"} in container["env"]
    assert {"name": "metrics", "containerPort": 8443} in container["ports"]
    assert container["livenessProbe"]["httpGet"]["port"] == "probes"
    assert found["Service"]["spec"]["ports"] == [{"name": "metrics", "port": 8443, "targetPort": "metrics"}]
    assert ports(found["NetworkPolicy"]["spec"]["ingress"]) == {("TCP", 8080), ("TCP", 8443)}
    assert found["Secret"]["metadata"]["name"] == "widgets-operator-metrics-tls"
    assert "data" not in found["Secret"]
    (endpoint,) = found["ServiceMonitor"]["spec"]["endpoints"]
    assert (endpoint["scheme"], endpoint["port"]) == ("https", "metrics")
    assert endpoint["tlsConfig"] == {
        "serverName": "widgets-operator.widgets-operator.svc",
        "ca": {"secret": {"name": "widgets-operator-metrics-tls", "key": "ca.crt"}},
    }
    kinds = list(found)
    assert kinds.index("Secret") < kinds.index("Deployment")


@pytest.mark.parametrize(("certificates", "patch"), [("own", ["patch"]), ("cert-manager", [])])
def test_secure_metrics_are_granted_their_secret_and_two_reviews(certificates: Any, patch: list[str]) -> None:
    granted = grants(operator(deploy=Deploy(secure_metrics=True, certificates=certificates)), namespace="widgets")
    plain = grants(operator(), namespace="widgets")

    assert [rule for rule in granted["widgets"] if rule not in plain["widgets"]] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["widgets-operator-metrics-tls"],
            "verbs": ["get", "list", "watch", *patch],
        }
    ]
    assert granted[CLUSTER] == [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]
    assert CLUSTER not in plain


def test_cert_manager_makes_the_certificate_of_secure_metrics() -> None:
    found = objects(operator(deploy=Deploy(secure_metrics=True, certificates="cert-manager")))
    certificate = found["Certificate"]["spec"]

    assert "Secret" not in found
    assert certificate["secretName"] == "widgets-operator-metrics-tls"
    assert certificate["dnsNames"][0] == "widgets-operator.widgets-operator.svc"
    assert certificate["issuerRef"]["name"] == found["Issuer"]["metadata"]["name"] == "widgets-operator-metrics"


def test_secure_metrics_need_a_deployment() -> None:
    """Outside of the cluster metrics are in plain text."""
    declared = operator(deploy=Deploy(secure_metrics=True))
    assert objects(declared, local=True).keys() == objects(local=True).keys()
    assert objects(declared, crds_only=True).keys() == objects(crds_only=True).keys()


def test_alerts_and_dashboard_ask_for_the_job_that_the_service_monitor_makes() -> None:
    found = objects(include=["service-monitor", "alerts", "dashboards"])
    job = found["Service"]["metadata"]["labels"][found["ServiceMonitor"]["spec"]["jobLabel"]]

    assert f'job="{job}"' in found["PrometheusRule"]["spec"]["groups"][0]["rules"][0]["expr"]
    assert found["ConfigMap"]["metadata"]["labels"]["grafana_dashboard"] == "1"
    (text,) = found["ConfigMap"]["data"].values()
    assert json.loads(text)["title"] == job


def test_parts_about_pods_are_left_out_where_there_are_none() -> None:
    local = objects(operator(deploy=Deploy(replicas=2)), local=True)

    assert {"Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "RoleBinding"} <= local.keys()
    assert not {"Deployment", "NetworkPolicy", "Service", "PodDisruptionBudget"} & local.keys()
    assert "ConfigMap" in objects(local=True, include=["dashboards"])


def test_the_definitions_alone_can_be_had() -> None:
    assert list(objects(crds_only=True)) == ["CustomResourceDefinition"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"include": ["nonsense"]},
            "there is no part 'nonsense' of a manifest: --with takes .*network-policy, service, ",
        ),
        ({"exclude": [""]}, "there is no part '' of a manifest: --without takes .*network-policy, service, pdb, "),
        ({"include": ["pdb"], "exclude": ["pdb"]}, "--with and --without both name pdb"),
        ({"include": ["service-monitor"], "exclude": ["service"]}, "service-monitor needs service"),
        (
            {"include": ["pdb"], "local": True},
            "pdb needs pods, which this manifest does not have: leave out pdb",
        ),
        ({"include": ["pdb"], "crds_only": True}, "--crds-only leaves out the parts of --with"),
    ],
)
def test_parts_that_cannot_be_there_are_refused_in_a_sentence(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        objects(**options)


def test_labels_of_the_user_are_on_every_object_and_select_nothing() -> None:
    labels = {"example.com/team": "tools", "app.kubernetes.io/managed-by": "argo"}
    found = objects(
        operator(deploy=Deploy(labels=labels, replicas=2)),
        include=["service-monitor", "alerts", "dashboards"],
    )
    template = found["Deployment"]["spec"]["template"]

    for each in (*found.values(), template):
        assert each["metadata"]["labels"].items() >= {"example.com/team": "tools", **SELECTOR}.items()
        assert each["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argo"
    assert found["Deployment"]["spec"]["selector"] == {"matchLabels": SELECTOR}
    assert found["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_label_that_selects_the_pods_is_refused() -> None:
    key, why = "app.kubernetes.io/name", "would change which pods are its own"
    with pytest.raises(OptionError, match=f"the label {key} of operator widgets-operator {why}"):
        objects(operator(deploy=Deploy(labels={key: "other"})))


@pytest.mark.parametrize(("key", "value"), [("team", ""), ("x" * 63, "y" * 63), ("a.b-c/D_e.f", "1")])
def test_a_label_that_kubernetes_takes_is_taken(key: str, value: str) -> None:
    assert objects(operator(deploy=Deploy(labels={key: value})))["Role"]["metadata"]["labels"][key] == value


def test_the_hook_has_the_last_word() -> None:
    def privately(found: list[Resource]) -> list[Resource]:
        (deployment,) = [each for each in found if each["kind"] == "Deployment"]
        deployment["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "registry"}]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"}, "stringData": {}}
        return [*found[:-1], secret, deployment]

    found = objects(operator(deploy=Deploy(customize=privately)))

    assert list(found)[-2:] == ["Secret", "Deployment"]
    assert found["Deployment"]["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_what_the_hook_changes_is_changed_for_one_manifest_only() -> None:
    """No object of a manifest is shared with what the next one is made from."""

    def wreck(value: Any) -> None:
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            wreck(inner)
        if isinstance(value, dict | list):
            value.clear()

    declared = operator(deploy=Deploy(replicas=2))
    before = documents(declared, image=IMAGE, namespace="here", include=["alerts", "service-monitor"])
    for each in documents(declared, image=IMAGE, namespace="here", include=["alerts", "service-monitor"]):
        wreck(each)

    again = documents(declared, image=IMAGE, namespace="here", include=["alerts", "service-monitor"])
    assert again == before


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (lambda _: None, "customize of operator widgets-operator returned NoneType: return the list of objects"),
        (iter, "customize .* returned list_iterator: return the list of objects"),
        (lambda found: [None, *found], "customize .* returned no object at 0: it needs apiVersion, kind and metadata"),
        (lambda _: [{"apiVersion": "v1", "kind": "List"}], "customize .* returned no object at 0"),
        (lambda _: [{"apiVersion": "v1", "kind": "Pod", "metadata": {}}], "customize .* returned no object at 0"),
        (
            lambda _: [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": object}],
            "the manifest holds <class 'object'>, which is not text, a number, a list or a mapping: convert it",
        ),
    ],
)
def test_a_hook_that_returns_something_else_is_told_in_a_sentence(
    hook: Callable[[list[Resource]], list[Resource]], why: str
) -> None:
    with pytest.raises(OptionError, match=why):
        objects(operator(deploy=Deploy(customize=hook)))


@pytest.mark.parametrize("grace", [-1.0, 3601.0, float("nan")])
def test_a_grace_period_that_cannot_be_is_refused(grace: float) -> None:
    with pytest.raises(OptionError, match=r"grace of operator widgets-operator is .*: use 0 to 3600 seconds"):
        operator(grace=grace)
