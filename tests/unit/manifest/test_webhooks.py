"""Admission webhooks and conversion: what a manifest says of them, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from bonny import Controller, Deploy, Kind, Operator, Scope
from bonny.errors import OptionError
from bonny.resource import Resource
from bonny.webhooks import Admission
from bonny_dev.manifest.bundle import documents, to_yaml
from bonny_dev.manifest.rbac import CLUSTER, grants
from bonny_dev.manifest.webhook_checks import warnings
from bonny_dev.manifest.webhooks import webhooks
from tests.support.lamps import Lamp, LampAdmission, OldLamp

IMAGE = "registry.example.com/lamps-operator:1.0.0"
SERVICE = {"name": "lamps-operator-webhook", "namespace": "lamps", "port": 443}
OWN_CONDITIONS = [
    {
        "name": "not-by-the-operator",
        "expression": "request.userInfo.username != 'system:serviceaccount:lamps:lamps-operator'",
    },
    {
        "name": "not-being-deleted",
        "expression": "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)",
    },
]


class Nodes(Controller[Any]):
    """Events about an object without a namespace are in `default`: a Role there."""

    resource = Kind("v1", "Node")

    async def reconcile(self, axn: Any) -> None: ...


def admission(**attributes: Any) -> type[Admission[Any]]:
    """A class with `validate` and these attributes."""
    return type("LampRule", (Admission,), {"resource": Lamp, "validate": LampAdmission.validate, **attributes})


def operator(*admissions: Any, converted: bool = False, **options: Any) -> Operator:
    versions = [Lamp, OldLamp] if converted else [Lamp]
    return Operator(
        **{"name": "lamps-operator", "group": "example.com", "crds": versions, "controllers": admissions, **options}
    )


def manifest(declared: Operator, **options: Any) -> list[Resource]:
    return list(yaml.safe_load_all(to_yaml(documents(declared, image=IMAGE, namespace="lamps", **options))))


def only(objects: list[Resource], kind: str) -> Resource:
    (found,) = (each for each in objects if each["kind"] == kind)
    return found


def webhook(**attributes: Any) -> Resource:
    """The one webhook of a class with `validate` and these attributes."""
    ((configuration,),) = [webhooks(operator(admission(**attributes)), "lamps")]
    (found,) = configuration["webhooks"]
    return dict(found)


def test_an_admission_is_a_webhook_for_each_of_its_actions() -> None:
    validating, mutating = webhooks(operator(LampAdmission), "lamps")
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["lamps"], "scope": "Namespaced"}
    common = {
        "name": "lamp-admission.example.com",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["lamps", "kube-system"]}
            ]
        },
        "matchConditions": OWN_CONDITIONS,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "admissionReviewVersions": ["v1"],
    }

    assert validating["kind"] == "ValidatingWebhookConfiguration"
    assert validating["metadata"] == {
        "name": "lamps-operator.example.com",
        "annotations": {"bonny.dev/kubernetes-since": "1.30"},
    }
    assert validating["webhooks"] == [
        {
            **common,
            "clientConfig": {"service": {**SERVICE, "path": "/validate/lamp-admission"}},
            "rules": [{**rule, "operations": ["CREATE", "UPDATE", "DELETE"]}],
        }
    ]
    assert mutating["kind"] == "MutatingWebhookConfiguration"
    assert mutating["webhooks"] == [
        {
            **common,
            "clientConfig": {"service": {**SERVICE, "path": "/mutate/lamp-admission"}},
            "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
            "reinvocationPolicy": "Never",
        }
    ]


def test_options_of_the_class_are_those_of_the_webhook() -> None:
    made = webhook(
        resource=(Lamp, Kind("v1", "Node")),
        operations=("CREATE",),
        subresources=("status",),
        match_conditions={"bright": "object.spec.brightness > 3"},
        object_selector={"a": "b"},
        namespace_selector={"c": "d"},
        side_effects="NoneOnDryRun",
        timeout=2,
    )

    assert [(rule["resources"], rule["operations"], rule["scope"]) for rule in made["rules"]] == [
        (["lamps", "lamps/status"], ["CREATE"], "Namespaced"),
        (["nodes", "nodes/status"], ["CREATE"], "Cluster"),
    ]
    assert made["matchConditions"] == [{"name": "bright", "expression": "object.spec.brightness > 3"}, *OWN_CONDITIONS]
    assert made["objectSelector"] == {"matchLabels": {"a": "b"}}
    assert made["namespaceSelector"]["matchLabels"] == {"c": "d"}
    assert made["namespaceSelector"]["matchExpressions"][0]["operator"] == "NotIn"
    assert (made["sideEffects"], made["timeoutSeconds"], made["failurePolicy"]) == ("NoneOnDryRun", 2, "Ignore")


def test_a_default_may_be_called_again() -> None:
    (mutating,) = webhooks(
        operator(admission(validate=Admission.validate, default=LampAdmission.default, again=True)), "lamps"
    )

    assert mutating["webhooks"][0]["reinvocationPolicy"] == "IfNeeded"


def test_an_operator_that_watches_its_own_namespace_reviews_writes_there_and_nowhere_else() -> None:
    ((configuration,),) = [webhooks(operator(admission(), watch="namespace"), "lamps")]

    assert configuration["webhooks"][0]["namespaceSelector"] == {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["lamps"]}]
    }
    assert configuration["webhooks"][0]["matchConditions"] == OWN_CONDITIONS


def test_what_an_installation_for_one_namespace_has_elsewhere_says_so_in_its_name() -> None:
    """Regression: the names were the same for all installations, so the second one took the objects over."""
    deploy = Deploy(secure_metrics=True)
    declared = operator(LampAdmission, Nodes, converted=True, watch="namespace", deploy=deploy)
    objects = [each for each in manifest(declared) if each["metadata"].get("namespace", "") != "lamps"]
    named = {(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects}

    assert {each for each in named if not each[2].endswith(".lamps")} == {
        ("Namespace", None, "lamps"),
        ("CustomResourceDefinition", None, "lamps.example.com"),
        *(("ClusterRole", None, f"lamps-operator-{role}") for role in ("view", "edit", "admin")),
    }
    assert {each for each in named if each[2] == "lamps-operator.lamps"} == {
        ("ClusterRole", None, "lamps-operator.lamps"),
        ("ClusterRoleBinding", None, "lamps-operator.lamps"),
        ("Role", "default", "lamps-operator.lamps"),
        ("RoleBinding", "default", "lamps-operator.lamps"),
    }
    for each in objects:
        if each["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            assert each["roleRef"]["name"] == each["metadata"]["name"]
    assert {each["metadata"]["name"] for each in webhooks(declared, "lamps")} == {"lamps-operator.example.com.lamps"}


def test_each_object_comes_after_what_it_needs_and_the_webhooks_last() -> None:
    kinds = [each["kind"] for each in manifest(operator(LampAdmission, converted=True))]

    assert kinds[:6] == [
        "Namespace",
        "Secret",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "Service",
        "CustomResourceDefinition",
    ]
    assert kinds[-3:] == ["Deployment", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]


@pytest.mark.parametrize("certificates", ["own", "cert-manager"])
def test_nothing_that_another_writes_is_in_the_manifest(certificates: Any) -> None:
    """An apply would take it away: the authority in a caBundle, and the content of the Secret."""
    objects = manifest(operator(LampAdmission, converted=True, deploy=Deploy(certificates=certificates)))

    assert "caBundle" not in to_yaml(each for each in objects if each["kind"] != "ValidatingAdmissionPolicy")
    for each in objects:
        assert each["kind"] != "Secret" or each.keys() == {"apiVersion", "kind", "metadata", "type"}


def test_an_operator_without_webhooks_has_nothing_of_them() -> None:
    objects = manifest(operator())

    assert not {"Secret", "ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"} & {
        each["kind"] for each in objects
    }
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert [port["name"] for port in container["ports"]] == ["probes"]
    assert "BONNY_DRAIN_SECONDS" not in {variable["name"] for variable in container["env"]}


def test_the_pod_has_the_port_and_the_time_to_answer_the_last_reviews() -> None:
    without = only(manifest(operator()), "Deployment")["spec"]["template"]["spec"]
    pod = only(manifest(operator(LampAdmission)), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (policy,) = (each for each in manifest(operator(LampAdmission)) if each["kind"] == "NetworkPolicy")

    assert container["ports"][1] == {"name": "webhook", "containerPort": 10250}
    assert {"name": "BONNY_DRAIN_SECONDS", "value": "10"} in container["env"]
    assert pod["terminationGracePeriodSeconds"] == without["terminationGracePeriodSeconds"] + 10
    assert pod["volumes"] == without["volumes"]
    assert {"protocol": "TCP", "port": 10250} in policy["spec"]["ingress"][0]["ports"]


def test_an_update_never_has_fewer_replicas_and_a_drain_evicts_one_at_a_time() -> None:
    objects = manifest(operator(LampAdmission, deploy=Deploy(replicas=2)))

    assert only(objects, "Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert only(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


# --- conversion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"local": True}, {"crds_only": True}])
def test_a_kind_that_is_converted_says_so_in_every_manifest(options: dict[str, bool]) -> None:
    definition = only(manifest(operator(converted=True), **options), "CustomResourceDefinition")

    assert definition["metadata"]["annotations"] == {"bonny.dev/converted-by": "lamps/lamps-operator-webhook"}
    assert definition["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {**SERVICE, "path": "/convert"}},
            "conversionReviewVersions": ["v1"],
        },
    }


def test_a_kind_that_is_not_converted_has_no_conversion() -> None:
    definition = only(manifest(operator(LampAdmission)), "CustomResourceDefinition")

    assert "conversion" not in definition["spec"]
    assert "annotations" not in definition["metadata"]


def test_a_replica_can_convert_before_it_is_ready() -> None:
    def service(declared: Operator) -> Resource:
        (found,) = (each for each in manifest(declared) if each["metadata"]["name"] == "lamps-operator-webhook")
        return dict(found["spec"])

    assert service(operator(converted=True))["publishNotReadyAddresses"] is True
    assert "publishNotReadyAddresses" not in service(operator(LampAdmission))
    assert service(operator(LampAdmission))["ports"] == [{"name": "webhook", "port": 443, "targetPort": "webhook"}]


# --- certificates -----------------------------------------------------------------------------------------------------


def rules(declared: Operator, place: str) -> list[tuple[str, list[str], list[str]]]:
    return [
        (",".join(rule["resources"]), rule["resourceNames"], rule["verbs"])
        for rule in grants(declared, namespace="lamps").get(place, ())
        if "resourceNames" in rule and "leases" not in rule["resources"]
    ]


def test_permissions_name_the_one_secret_and_the_objects_that_trust_it() -> None:
    declared = operator(LampAdmission, converted=True)

    assert rules(declared, "lamps") == [("secrets", ["lamps-operator-webhook-tls"], ["get", "list", "watch", "patch"])]
    assert rules(declared, CLUSTER) == [
        (
            "mutatingwebhookconfigurations,validatingwebhookconfigurations",
            ["lamps-operator.example.com"],
            ["get", "patch"],
        ),
        ("customresourcedefinitions", ["lamps.example.com"], ["get", "patch"]),
    ]
    assert rules(operator(admission()), CLUSTER) == [
        ("validatingwebhookconfigurations", ["lamps-operator.example.com"], ["get", "patch"])
    ]
    assert rules(operator(), CLUSTER) == []


@pytest.mark.parametrize(("watch", "place"), [("all", CLUSTER), ("namespace", "lamps")])
def test_reads_of_a_webhook_are_granted_where_it_reviews(watch: str, place: str) -> None:
    """Regression: an operator of one namespace could read the ConfigMaps of all namespaces."""
    read = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    granted = grants(operator(admission(rules=(read,)), watch=watch), namespace="lamps")

    assert [where for where, granted_there in granted.items() if read in granted_there] == [place]


def test_outside_of_the_cluster_no_certificate_is_needed() -> None:
    objects = manifest(operator(LampAdmission), local=True)

    assert {each["kind"] for each in objects if each["kind"] in {"Secret", "ClusterRole", "Service"}} == {"ClusterRole"}
    assert not any("secrets" in rule["resources"] for rule in only(objects, "Role")["rules"])
    assert "ValidatingWebhookConfiguration" not in {each["kind"] for each in objects}


def test_the_guard_is_about_exactly_what_may_be_patched() -> None:
    objects = manifest(operator(LampAdmission, converted=True))
    guard = only(objects, "ValidatingAdmissionPolicy")
    watched = [
        (rule["resources"], rule["resourceNames"]) for rule in guard["spec"]["matchConstraints"]["resourceRules"]
    ]

    assert guard["metadata"]["name"] == "lamps-operator-webhook-guard.example.com"
    assert watched == [
        (["validatingwebhookconfigurations"], ["lamps-operator.example.com"]),
        (["mutatingwebhookconfigurations"], ["lamps-operator.example.com"]),
        (["customresourcedefinitions"], ["lamps.example.com"]),
    ]
    assert guard["spec"]["matchConditions"] == [
        {
            "name": "by-the-operator",
            "expression": "request.userInfo.username == 'system:serviceaccount:lamps:lamps-operator'",
        }
    ]
    assert guard["spec"]["failurePolicy"] == "Fail"
    assert only(objects, "ValidatingAdmissionPolicyBinding")["spec"] == {
        "policyName": guard["metadata"]["name"],
        "validationActions": ["Deny"],
    }


def test_cert_manager_makes_the_secret_and_writes_the_bundles() -> None:
    declared = operator(LampAdmission, converted=True, deploy=Deploy(certificates="cert-manager"))
    objects = manifest(declared)
    kinds = [each["kind"] for each in objects]
    certificate, issuer = only(objects, "Certificate"), only(objects, "Issuer")

    assert kinds.index("Issuer") < kinds.index("Certificate") < kinds.index("CustomResourceDefinition")
    assert not {"Secret", "ValidatingAdmissionPolicy"} & set(kinds)
    assert certificate["spec"]["secretName"] == "lamps-operator-webhook-tls"
    assert certificate["spec"]["dnsNames"][0] == "lamps-operator-webhook.lamps.svc"
    assert certificate["spec"]["issuerRef"] == {"kind": "Issuer", "name": issuer["metadata"]["name"]}
    place = f"lamps/{certificate['metadata']['name']}"
    injected = ("CustomResourceDefinition", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
    for kind in injected:
        assert only(objects, kind)["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == place
    assert rules(declared, CLUSTER) == []
    assert rules(declared, "lamps") == [("secrets", ["lamps-operator-webhook-tls"], ["get", "list", "watch"])]


# --- what is refused --------------------------------------------------------------------------------------------------


def foreign(api_version: str, kind: str, **attributes: Any) -> dict[str, Any]:
    return {"resource": Kind(api_version, kind), **attributes}


FAIL = {"failure_policy": "Fail", "because": "the auditors ask for it"}


@pytest.mark.parametrize(
    ("attributes", "problem"),
    [
        (
            foreign("coordination.k8s.io/v1", "Lease"),
            "reviews leases.coordination.k8s.io, which no webhook may hold up: nodes and leaders stay alive by them",
        ),
        (foreign("v1", "Event"), "reviews events, which"),
        (foreign("events.k8s.io/v1", "Event"), "reviews events.events.k8s.io, which"),
        (foreign("authentication.k8s.io/v1", "TokenReview"), "every login waits for them"),
        (foreign("authorization.k8s.io/v1", "SubjectAccessReview"), "every request to a server"),
        (
            foreign("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
            "the API server never sends them, so that a broken webhook can be removed",
        ),
        (
            foreign("v1", "Node", **FAIL),
            "fails closed for nodes, without which no cluster can be repaired while it is down: leave fail",
        ),
        (foreign("v1", "Namespace", **FAIL), "fails closed for namespaces"),
        (foreign("rbac.authorization.k8s.io/v1", "Role", **FAIL), "fails closed for roles"),
        (foreign("apiextensions.k8s.io/v1", "CustomResourceDefinition", **FAIL), "fails closed for custom"),
        ({"resource": Kind("v1", "Pod", label_selector="a=b")}, "selects objects of Pod: use match_conditions"),
        ({"resource": Kind("*/*", "Any", plural="*", scope=Scope.CLUSTER)}, "names * of */*: name each group"),
        ({"subresources": ("*",)}, "names the subresource '*': name each"),
        ({"validate": Admission.validate}, "has no handler for its operations"),
        ({"operations": ("DELETE",)}, "has no handler for its operations"),
        (
            {"operations": ("DELETE",), "default": LampAdmission.default},
            "has default, which is never called for DELETE",
        ),
        (
            {"match_conditions": {"not-being-deleted": "true"}},
            "a match condition called 'not-being-deleted', which",
        ),
        (
            {"match_conditions": {"a": "object.spec.brightnes > 1"}},
            "reads object.spec.brightnes, and Lamp example.com/v1 has no such field: did you mean 'brightness'?",
        ),
    ],
)
def test_what_has_no_effect_or_could_lock_a_cluster_is_refused(attributes: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError, match=f"^LampRule .*{re.escape(problem)}"):
        manifest(operator(admission(**attributes)))


def test_kinds_of_others_cannot_fail_closed_where_the_operator_itself_runs() -> None:
    pods = admission(**foreign("v1", "Pod", **FAIL))

    assert webhook(**foreign("v1", "Pod", **FAIL))["failurePolicy"] == "Fail"
    with pytest.raises(OptionError, match="fails closed for pods where the operator itself must start"):
        manifest(operator(pods, watch="namespace"))


# --- what is risky ----------------------------------------------------------------------------------------------------


def risks(declared: Operator, **options: Any) -> list[str]:
    return [*warnings(declared, manifest(declared, **options))]


def test_one_replica_is_risky_where_a_webhook_fails_closed() -> None:
    (risk,) = risks(operator(LampAdmission))
    assert risk == (
        "the operator has one replica, and while it restarts all writes that lamp-admission.example.com reviews are "
        "refused: use Deploy(replicas=2)"
    )
    assert risks(operator(LampAdmission, deploy=Deploy(replicas=2))) == []
    assert risks(operator(LampAdmission), local=True) == []
    assert risks(operator(admission(failure_policy="Ignore"))) == []


def test_one_replica_is_risky_where_it_converts() -> None:
    (risk,) = risks(operator(converted=True))
    assert risk == (
        "the operator has one replica, and while it restarts Lamp can be read and written in its stored version only: "
        "use Deploy(replicas=2)"
    )
    assert risks(operator(converted=True), local=True) == []


def test_an_operator_for_one_namespace_hears_that_a_kind_has_one_converter() -> None:
    two = Deploy(replicas=2)
    (risk,) = risks(operator(converted=True, watch="namespace", deploy=two))
    assert risk == (
        "a cluster has one converter of Lamp: install this operator in one namespace only, or handle all namespaces "
        'with watch="all"'
    )
    assert risks(operator(converted=True, deploy=two)) == []
    assert risks(operator(watch="namespace")) == []
