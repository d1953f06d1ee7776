"""Policies: the admission policies of an operator and their bindings, as objects of a manifest.

You need it to see the output of `invoke manifest` for a policy: `policies(operator, namespace, definitions)`.
Elsewhere: how a policy is declared (`bonny.policies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from bonny.api.version import Version
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource

from ..crd.definition import without_empty
from .field_checks import check_fields, schemas_of
from .policy_checks import check_policy, kinds_of

if TYPE_CHECKING:
    # The extra may be absent; there are no policies then.
    from bonny.policies import Params, Policy

API_VERSION: Final = "admissionregistration.k8s.io/v1"
SINCE: Final = "bonny.dev/kubernetes-since"
"""The annotation with the first minor version of Kubernetes that serves an object."""

GUARD: Final = "webhook-guard"
"""Part of the name of the policy that limits the writes of an operator with webhooks (`serving`)."""

# Always the case for writes that a policy must not hold up.
NOT_DELETED: Final = "request.operation == 'DELETE' || !has(object.metadata.deletionTimestamp)"


def policies(operator: Operator, namespace: str, definitions: Iterable[Resource]) -> Iterator[Resource]:
    """Each policy of `operator`, and after it its binding. `definitions` are the CRDs of the operator's own kinds.

    Raises: `OptionError` naming the policy, for a mistake that the API server accepts, such as a field of an own kind
    that does not exist.
    """
    schemas = schemas_of(definitions)
    for each in operator.declarations:
        policy = cast("Policy", each)
        owner, expressions = f"the policy {policy.name}", list(_expressions(policy))
        check_policy(policy, owner)
        for kind in kinds_of(policy):
            check_fields(owner, expressions, _kind(kind, operator), schemas)
        if policy.params is not None:
            check_fields(owner, expressions, _kind(policy.params.kind, operator), schemas, ("params",))
        yield from _objects(policy, operator, namespace)


def _objects(policy: Policy, operator: Operator, namespace: str) -> Iterator[Resource]:
    from bonny.policies import MutatingAdmissionPolicy, ValidatingAdmissionPolicy  # noqa: PLC0415  see above

    name = operator.outside(f"{policy.name}.{operator.group}", namespace)
    conditions = dict(policy.match_conditions)
    if {"CREATE", "UPDATE"} & set(policy.operations):
        conditions["not-being-deleted"] = NOT_DELETED
    if policy.exempt_operator:
        conditions["not-by-the-operator"] = not_by(operator, namespace)
    spec = {
        "matchConstraints": _constraints(policy, operator, namespace),
        "matchConditions": named(conditions),
        **without_empty(variables=named(policy.variables)),
        "failurePolicy": "Fail" if _fails_closed(policy) else "Ignore",
    }
    binding: Resource = {"policyName": name}
    if policy.params is not None:
        params = _kind(policy.params.kind, operator)
        spec["paramKind"] = {"apiVersion": params.api_version, "kind": params.kind}
        binding["paramRef"] = _param_ref(policy.params)
    if isinstance(policy, ValidatingAdmissionPolicy):
        since = "1.30"
        spec["validations"] = [
            without_empty(
                expression=each.expression,
                message=each.message,
                messageExpression=each.message_expression,
                reason=each.reason,
            )
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


def _expressions(policy: Policy) -> Iterator[str]:
    """All its expressions in CEL."""
    from bonny.policies import MutatingAdmissionPolicy, ValidatingAdmissionPolicy  # noqa: PLC0415  see above

    yield from (*policy.match_conditions.values(), *policy.variables.values())
    if isinstance(policy, ValidatingAdmissionPolicy):
        yield from (text for each in policy.validations for text in (each.expression, each.message_expression))
    elif isinstance(policy, MutatingAdmissionPolicy):
        yield from (*policy.apply, *policy.json_patch)


def _fails_closed(policy: Policy) -> bool:
    """Whether a write is refused on which an expression fails."""
    own = all(isinstance(each, type) for each in kinds_of(policy))
    return policy.failure_policy == "Fail" or (own and not policy.failure_policy)


def _constraints(policy: Policy, operator: Operator, namespace: str) -> Resource:
    kinds = (_kind(each, operator) for each in kinds_of(policy))
    rules = [rule(kind, policy.operations, policy.subresources) for kind in kinds]
    # Elsewhere it would hold up the operators of other installations, which it does not exempt.
    expressions = [within(namespace)] if operator.namespaced else []
    selector = without_empty(matchLabels=dict(policy.namespace_selector), matchExpressions=expressions)
    return without_empty(resourceRules=rules, namespaceSelector=selector)


def _param_ref(params: Params) -> Resource:
    which: Resource = {"name": params.name} if params.name else {"selector": {"matchLabels": dict(params.selector)}}
    return which | without_empty(namespace=params.namespace, parameterNotFoundAction=params.not_found)


def rule(kind: Kind, operations: Iterable[str], subresources: Iterable[str]) -> Resource:
    """The rule that selects writes of one kind."""
    return {
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "operations": list(operations),
        "resources": [kind.plural, *(f"{kind.plural}/{each}" for each in subresources)],
    }


def within(namespace: str) -> Resource:
    """The expression of a namespaceSelector for this namespace alone."""
    return {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}


def not_by(operator: Operator, namespace: str) -> str:
    """The condition that the operator itself does not write."""
    return f"request.userInfo.username != 'system:serviceaccount:{namespace}:{operator.name}'"


def named(expressions: Mapping[str, str]) -> list[Resource]:
    """CEL expressions by name, in the form of matchConditions and variables."""
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _kind(resource: type[Version] | Kind, operator: Operator) -> Kind:
    return resource if isinstance(resource, Kind) else resource.as_kind(operator.group)
