"""Webhook checks: refuses an admission webhook that the API server would refuse, or that could lock a cluster.

Internal: `webhooks` calls `check_admission` for each class. The class itself checks what needs no operator.
"""

from __future__ import annotations

import re
from typing import Any, Final

from bonny.kinds import Kind
from bonny.naming import is_qualified_name, is_subdomain, kebab_case
from bonny.operator import Operator
from bonny.webhooks.admission import Admission

from .field_checks import Schemas, check_fields, refuse, without_strings

# k8s.io/apiserver, pkg/apis/admissionregistration/validation; two conditions are our own.
MOST_CONDITIONS: Final = 64
OWN_CONDITIONS: Final = ("not-by-the-operator", "not-being-deleted")

# Each is written all the time by the cluster itself: a slow webhook would already keep nodes and leaders from working.
NEVER: Final = {
    "leases.coordination.k8s.io": "nodes and leaders stay alive by them",
    "events": "every component writes them all the time",
    "events.events.k8s.io": "every component writes them all the time",
}
NEVER_GROUPS: Final = {
    "admissionregistration.k8s.io": "the API server never sends them, so that a broken webhook can be removed",
    "authentication.k8s.io": "every login waits for them",
    "authorization.k8s.io": "every request to a server in the cluster may wait for them",
}
# Without these a cluster cannot be repaired while the webhook is down. No namespace can be left out: they have none.
ESSENTIAL: Final = frozenset(
    ("nodes", "namespaces", "customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io")
)
ESSENTIAL_GROUPS: Final = frozenset(
    ("certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io")
)

# Variables of admission policies.
_UNKNOWN: Final = re.compile(r"(?<![\w.])(namespaceObject|params|variables)\b")


def check_admission(admission: type[Admission[Any]], operator: Operator, schemas: Schemas) -> None:
    """Raises: `OptionError` naming the class."""
    name = admission.__name__
    if not is_subdomain(f"{kebab_case(name)}.{operator.group}"):
        refuse(name, "gives no name for a webhook: use letters and digits in the name of the class")
    if not (admission.mutates() or admission.validated_operations()):
        refuse(name, "has no handler for its operations: define default, validate or validate_delete")
    if admission.mutates() and set(admission.operations) <= {"DELETE"}:
        refuse(name, "has default, which is never called for DELETE: add CREATE or UPDATE to its operations")
    for resource, kind in zip(admission.resources(), admission.kinds(operator.group), strict=True):
        _check_kind(admission, operator, kind, own=isinstance(resource, type))
        check_fields(name, admission.match_conditions.values(), kind, schemas)
    for subresource in admission.subresources:
        if not re.fullmatch("[a-z]+", subresource):
            refuse(name, f"names the subresource {subresource!r}: name each, for example 'status'")
    _check_conditions(admission)


def _check_kind(admission: type[Admission[Any]], operator: Operator, kind: Kind, *, own: bool) -> None:
    name = admission.__name__
    if kind.namespace or kind.label_selector or kind.field_selector:
        refuse(name, f"selects objects of {kind.kind}: use match_conditions or the selectors of the class instead")
    if "*" in f"{kind.api_version} {kind.plural}":
        refuse(name, f"names {kind.plural} of {kind.api_version}: name each group, version and kind")
    reason = NEVER.get(kind.resource) or NEVER_GROUPS.get(kind.group)
    if reason:
        refuse(name, f"reviews {kind.resource}, which no webhook may hold up: {reason}")
    if own or not admission.fails_closed():
        return
    if kind.resource in ESSENTIAL or kind.group in ESSENTIAL_GROUPS:
        refuse(
            name,
            f"fails closed for {kind.resource}, without which nobody can repair a cluster while no replica answers: "
            "leave failure_policy out",
        )
    if operator.watch == "namespace":
        refuse(
            name,
            f"fails closed for {kind.resource} in the namespace of the operator itself, which could keep it from "
            "starting: leave failure_policy out, or watch all namespaces",
        )


def _check_conditions(admission: type[Admission[Any]]) -> None:
    name, conditions = admission.__name__, admission.match_conditions
    for each, expression in conditions.items():
        if not is_qualified_name(each) or each in OWN_CONDITIONS:
            taken = ", and another name than those of the runtime" if each in OWN_CONDITIONS else ""
            refuse(name, f"has a match condition called {each!r}: use letters and digits, with - _ . between{taken}")
        if unknown := _UNKNOWN.search(without_strings(expression)):
            refuse(name, f"reads {unknown[1]} in a match condition, where a webhook has none: only policies do")
    most = MOST_CONDITIONS - len(OWN_CONDITIONS)
    if len(conditions) > most:
        refuse(name, f"has {len(conditions)} match conditions and the API server takes {most} beside two of our own")
