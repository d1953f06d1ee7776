"""Admission policies: what a manifest says of them, and what it refuses."""

from __future__ import annotations

import re
import sys
import types
from typing import Any

import pytest

from bonny import Kind, Operator, Spec, Version
from bonny.errors import OptionError
from bonny.policies import MutatingAdmissionPolicy, Params, Policy, ValidatingAdmissionPolicy, Validation
from bonny.resource import Resource
from bonny.run.discovery import discover
from bonny_dev.manifest.bundle import documents
from bonny_dev.manifest.policies import API_VERSION, SINCE


class LampSpec(Spec):
    """The desired state of a Lamp."""

    brightness: int = 1
    colours: dict[str, str] | None = None


class Lamp(Version):
    """A lamp."""

    kind = "Lamp"
    version = "v1"
    storage = True
    hub = True
    spec: LampSpec


SMALL = Validation("object.spec.brightness < 10", message="less than 10")


def validating(name: str = "lamp-small", **options: Any) -> ValidatingAdmissionPolicy:
    return ValidatingAdmissionPolicy(name, **{"resource": Lamp, "validations": (SMALL,), **options})


def manifest(*policies: Policy, **options: Any) -> list[Resource]:
    operator = Operator(name="lamps-operator", group="example.com", crds=[Lamp, *policies])
    return [each for each in documents(operator, **options) if each["apiVersion"] == API_VERSION]


def test_a_policy_is_followed_by_its_binding() -> None:
    policy, binding = manifest(validating(), namespace="lamps")

    assert policy["kind"] == "ValidatingAdmissionPolicy"
    assert policy["metadata"]["name"] == "lamp-small.example.com"
    assert policy["metadata"]["annotations"] == {SINCE: "1.30"}
    assert policy["spec"] == {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["example.com"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["lamps"],
                }
            ]
        },
        "matchConditions": [
            {
                "name": "not-being-deleted",
                "expression": "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)",
            },
            {
                "name": "not-by-the-operator",
                "expression": "request.userInfo.username != 'system:serviceaccount:lamps:lamps-operator'",
            },
        ],
        "failurePolicy": "Fail",
        "validations": [{"expression": "object.spec.brightness < 10", "message": "less than 10", "reason": "Invalid"}],
    }
    assert binding["kind"] == "ValidatingAdmissionPolicyBinding"
    assert binding["spec"] == {"policyName": "lamp-small.example.com", "validationActions": ["Deny"]}


def test_parameters_are_named_in_the_policy_and_chosen_in_the_binding() -> None:
    config_map = Kind("v1", "ConfigMap")
    policy, binding = manifest(validating(params=Params(config_map, name="limits", not_found="Allow")))

    assert policy["spec"]["paramKind"] == {"apiVersion": "v1", "kind": "ConfigMap"}
    assert binding["spec"]["paramRef"] == {"name": "limits", "parameterNotFoundAction": "Allow"}
    every = manifest(validating(params=Params(config_map, namespace="lamps")))[1]["spec"]["paramRef"]
    assert every == {"selector": {"matchLabels": {}}, "namespace": "lamps", "parameterNotFoundAction": "Deny"}


def test_a_mutating_policy_says_from_which_kubernetes_on() -> None:
    patch = '[JSONPatch{op: "add", path: "/spec/brightness", value: 2}]'
    policy, binding = manifest(
        MutatingAdmissionPolicy("lamp-dim", resource=Lamp, apply=("Object{}",), json_patch=(patch,))
    )

    assert policy["metadata"]["annotations"] == {SINCE: "1.36"}
    assert policy["spec"]["mutations"] == [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}},
        {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
    ]
    assert policy["spec"]["reinvocationPolicy"] == "Never"
    assert binding["spec"] == {"policyName": "lamp-dim.example.com"}


def test_kinds_of_others_are_not_locked_by_an_expression_that_fails() -> None:
    pods = Kind("v1", "Pod")
    validation = Validation("true", message="never")

    def failure_policy(**options: Any) -> str:
        return str(manifest(validating(validations=(validation,), **options))[0]["spec"]["failurePolicy"])

    assert failure_policy(resource=pods) == "Ignore"
    assert failure_policy(resource=(Lamp, pods)) == "Ignore"
    assert failure_policy(resource=pods, failure_policy="Fail") == "Fail"
    assert failure_policy(failure_policy="Ignore") == "Ignore"


def test_nothing_but_the_deletion_is_exempt_where_only_deletions_are_seen() -> None:
    policy, _ = manifest(
        validating(operations=("DELETE",), validations=(Validation("true", message="-"),), exempt_operator=False)
    )

    assert policy["spec"]["matchConditions"] == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (
            "object.spec.brightnes < 3",
            "reads object.spec.brightnes, and Lamp example.com/v1 has no such field: did you mean 'brightness'?",
        ),
        (
            "oldObject.spec.?size.orValue(1) < 3",
            "reads oldObject.spec.size, and Lamp example.com/v1 has no such field: it has brightness, colours",
        ),
        (
            "object.specs.brightness < 3",
            "reads object.specs, and Lamp example.com/v1 has no such field: did you mean 'spec'?",
        ),
    ],
)
def test_a_field_that_does_not_exist_is_refused(expression: str, problem: str) -> None:
    policy = validating(validations=(Validation(expression, message="-"),))

    with pytest.raises(OptionError, match=f"^the policy lamp-small {re.escape(problem)}$"):
        manifest(policy)


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.labels.size == 'big'",
        "object.spec.colours.red == 'x' && object.spec.brightness.size() > 0",
        "'object.spec.nothing' != \"object.spec.'nothing\" && r'\\object.spec.nothing' != ''",
        "variables.object.spec.nothing || my_object.spec.nothing || objects.spec.nothing",
        "params.spec.nothing == 1",
        "has(object.spec.__in__)",
    ],
)
def test_what_is_not_a_field_of_the_kind_is_not_looked_up(expression: str) -> None:
    assert manifest(validating(validations=(Validation(expression, message="-"),)))


def test_fields_of_parameters_of_an_own_kind_are_looked_up_too() -> None:
    policy = validating(params=Params(Lamp), validations=(Validation("params.spec.nothing == 1", message="-"),))

    with pytest.raises(OptionError, match=r"reads params\.spec\.nothing, and Lamp"):
        manifest(policy)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"resource": Kind("v1", "Pod", namespace="a")}, "selects objects of Pod"),
        ({"operations": "CREATE"}, "has operations='CREATE': write a tuple"),
        ({"actions": "Deny"}, "has actions='Deny': write a tuple"),
    ],
)
def test_what_would_not_do_what_it_says_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError, match=re.escape(problem)):
        manifest(validating(**options))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"apply": "Object{}"}, "has apply='Object{}': write a tuple"),
        ({"apply": ("Object{}",), "operations": ("DELETE",)}, "sees DELETE"),
        ({"apply": ("Object{}",), "match_conditions": {"a": "has(namespaceObject.x)"}}, "reads namespaceObject"),
    ],
)
def test_a_mutating_policy_that_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError, match=re.escape(problem)):
        manifest(MutatingAdmissionPolicy("lamp-dim", **{"resource": Lamp, **options}))


def test_a_refusal_needs_a_text() -> None:
    with pytest.raises(OptionError, match="has the validation 'false' without a message"):
        manifest(validating(validations=(Validation("false"),)))


def test_two_policies_of_one_name_are_refused_and_one_in_two_lists_is_one() -> None:
    with pytest.raises(OptionError, match="two policies are called lamp-small"):
        manifest(validating(), validating())
    once = validating()

    assert len(manifest(once, once)) == 2


def test_policies_are_found_beside_the_version_classes(monkeypatch: pytest.MonkeyPatch) -> None:

    package = types.ModuleType("lamps_api")
    package.__path__ = []
    found = validating()
    vars(package).update(SMALL_LAMPS=found, _HIDDEN=validating("other"))
    monkeypatch.setitem(sys.modules, "lamps_api", package)

    assert discover(package) == (found,)


def test_a_manifest_of_definitions_only_has_no_policies() -> None:
    assert manifest(validating(), crds_only=True) == []


def test_installations_for_one_namespace_have_policies_of_their_own_that_apply_there() -> None:
    """Regression: the last installation took the policy over, and the first one was no longer exempt from it."""
    declared = validating(namespace_selector={"lamps": "yes"})
    operator = Operator(name="lamps-operator", group="example.com", crds=[Lamp, declared], watch="namespace")
    policy, binding = (each for each in documents(operator, namespace="team-a") if each["apiVersion"] == API_VERSION)

    assert policy["metadata"]["name"] == binding["metadata"]["name"] == "lamp-small.example.com.team-a"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert policy["spec"]["matchConstraints"]["namespaceSelector"] == {
        "matchLabels": {"lamps": "yes"},
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["team-a"]}],
    }
