"""Policies: the admission policies of an operator and their bindings, as objects of a manifest.

You need it to see what `invoke manifest` writes for a policy: `policies(operator, namespace, definitions)`.
Elsewhere: how a policy is declared (`bonny.api.policies`).

The API server compiles the expressions when they are applied, but does not compare them with the schema of a custom
kind. That is done here: a misspelt field would otherwise refuse every write.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bonny.api.markers import PRESERVE_UNKNOWN
from bonny.api.policies import MutatingAdmissionPolicy, Params, Policy, ValidatingAdmissionPolicy
from bonny.api.version import Version
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource

from .policy_checks import check_policy, refuse

API_VERSION: Final = "admissionregistration.k8s.io/v1"
SINCE: Final = "bonny.dev/kubernetes-since"
"""The annotation with the first minor version of Kubernetes that serves an object."""

OF_EVERY_OBJECT: Final = ("apiVersion", "kind", "metadata")
# Always the case for writes that a policy must not hold up.
NOT_DELETED: Final = "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)"

_STRING: Final = re.compile(r"""[rR]?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
# A chain of fields; what is called as a function is none.
_CHAIN: Final = re.compile(r"(?<![\w.])(object|oldObject|params)((?:\.\??[A-Za-z_]\w*(?![\w(]))+)")


def policies(operator: Operator, namespace: str, definitions: Iterable[Resource]) -> Iterator[Resource]:
    """Each policy of `operator`, and after it its binding. `definitions` are the CRDs of the operator's own kinds.

    Raises: `OptionError` naming the policy, for what the API server would refuse, and for a field of an own kind that
    does not exist.
    """
    schemas = {
        (definition["spec"]["group"], definition["spec"]["names"]["kind"], version["name"]): _schema(version)
        for definition in definitions
        for version in definition["spec"]["versions"]
    }
    for policy in operator.policies:
        check_policy(policy)
        for each in policy.kinds:
            _check_fields(policy, _kind(each, operator), schemas, ("object", "oldObject"))
        if policy.params is not None:
            _check_fields(policy, _kind(policy.params.kind, operator), schemas, ("params",))
        yield from _objects(policy, operator, namespace)


def _objects(policy: Policy, operator: Operator, namespace: str) -> Iterator[Resource]:
    name = f"{policy.name}.{operator.group}"
    spec: Resource = {"matchConstraints": _constraints(policy, operator)}
    conditions = dict(policy.match_conditions)
    if {"CREATE", "UPDATE"} & set(policy.operations):
        conditions["not-being-deleted"] = NOT_DELETED
    if policy.exempt_operator:
        account = f"system:serviceaccount:{namespace}:{operator.name}"
        conditions["not-by-the-operator"] = f"request.userInfo.username != '{account}'"
    spec["matchConditions"] = _named(conditions)
    if policy.variables:
        spec["variables"] = _named(policy.variables)
    spec["failurePolicy"] = "Fail" if policy.fails_closed else "Ignore"
    binding: Resource = {"policyName": name}
    if policy.params is not None:
        params = _kind(policy.params.kind, operator)
        spec["paramKind"] = {"apiVersion": params.api_version, "kind": params.kind}
        binding["paramRef"] = _param_ref(policy.params)
    if isinstance(policy, ValidatingAdmissionPolicy):
        since = "1.30"
        spec["validations"] = [
            {
                "expression": each.expression,
                **({"message": each.message} if each.message else {}),
                **({"messageExpression": each.message_expression} if each.message_expression else {}),
                "reason": each.reason,
            }
            for each in policy.validations
        ]
        binding["validationActions"] = list(policy.actions)
    elif isinstance(policy, MutatingAdmissionPolicy):
        since = "1.36"
        spec["mutations"] = [
            *({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": each}} for each in policy.apply),
            *({"patchType": "JSONPatch", "jsonPatch": {"expression": each}} for each in policy.json_patch),
        ]
        spec["reinvocationPolicy"] = "IfNeeded" if policy.again else "Never"
    metadata = {"name": name, "annotations": {SINCE: since}}
    for kind, content in ((type(policy).__name__, spec), (f"{type(policy).__name__}Binding", binding)):
        yield {"apiVersion": API_VERSION, "kind": kind, "metadata": dict(metadata), "spec": content}


def _constraints(policy: Policy, operator: Operator) -> Resource:
    rules = []
    for kind in (_kind(each, operator) for each in policy.kinds):
        plurals = [kind.plural, *(f"{kind.plural}/{subresource}" for subresource in policy.subresources)]
        rules.append(
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.api_version.rpartition("/")[2]],
                "operations": list(policy.operations),
                "resources": plurals,
            }
        )
    constraints: Resource = {"resourceRules": rules}
    if policy.namespace_selector:
        constraints["namespaceSelector"] = {"matchLabels": dict(policy.namespace_selector)}
    return constraints


def _param_ref(params: Params) -> Resource:
    which: Resource = {"name": params.name} if params.name else {"selector": {"matchLabels": dict(params.selector)}}
    place = {"namespace": params.namespace} if params.namespace else {}
    return {**which, **place, "parameterNotFoundAction": params.not_found}


def _named(expressions: Mapping[str, str]) -> list[Resource]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _kind(resource: type[Version] | Kind, operator: Operator) -> Kind:
    return resource if isinstance(resource, Kind) else resource.as_kind(operator.group)


def _schema(version: Resource) -> Resource:
    schema: Resource = version["schema"]["openAPIV3Schema"]
    return schema


def _check_fields(
    policy: Policy, kind: Kind, schemas: Mapping[tuple[str, str, str], Resource], roots: tuple[str, ...]
) -> None:
    schema = schemas.get((kind.group, kind.kind, kind.api_version.rpartition("/")[2]))
    if schema is None:
        return
    for expression in policy.expressions():
        for root, chain in _CHAIN.findall(_STRING.sub("''", expression)):
            if root in roots:
                _check_chain(policy, kind, schema, root, chain.replace("?", "").split(".")[1:])


def _check_chain(policy: Policy, kind: Kind, schema: Resource, root: str, names: list[str]) -> None:
    node: Any = {**schema, "properties": {**schema["properties"], **{name: {} for name in OF_EVERY_OBJECT}}}
    for number, name in enumerate(names):
        fields = node.get("properties")
        # A mapping, a value without a type and metadata have no fields in the schema.
        if not fields or PRESERVE_UNKNOWN in node or name.startswith("__"):
            return
        if name not in fields:
            (meant,) = difflib.get_close_matches(name, fields, 1) or [""]
            path = ".".join([root, *names[: number + 1]])
            refuse(
                policy,
                f"reads {path}, and {kind.kind} {kind.api_version} has no such field: "
                + (f"did you mean {meant!r}?" if meant else f"it has {', '.join(sorted(fields))}"),
            )
        node = fields[name]
