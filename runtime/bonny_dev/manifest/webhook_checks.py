"""Webhook checks: refuses an admission webhook that would have no effect, or that could lock a cluster.

Internal: `webhooks` calls `check_admission` for each class. The class itself makes the checks that need no operator. A
choice that is right in some clusters only is not refused: `warnings` describes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource

from .field_checks import Schemas, check_fields, refuse

if TYPE_CHECKING:
    from bonny.webhooks.admission import Admission

OWN_CONDITIONS: Final = ("not-by-the-operator", "not-being-deleted")

# By kind or group. A slow webhook would already keep nodes and leaders from working.
NEVER: Final = {
    "leases.coordination.k8s.io": "nodes and leaders stay alive by them",
    "events": "every component writes them all the time",
    "events.events.k8s.io": "every component writes them all the time",
    "admissionregistration.k8s.io": "the API server never sends them, so that a broken webhook can be removed",
    "authentication.k8s.io": "every login waits for them",
    "authorization.k8s.io": "every request to a server in the cluster may wait for them",
}
# Without these a cluster cannot be repaired while the webhook is down. No namespace can be left out: they have none.
ESSENTIAL: Final = frozenset(
    ("nodes", "namespaces", "customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io",
     "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io")
)  # fmt: skip


def check_admission(admission: type[Admission[Any]], operator: Operator, schemas: Schemas) -> None:
    """Raises: `OptionError` naming the class."""
    name = admission.__name__
    from bonny.webhooks.admission import Admission  # noqa: PLC0415  its extra may be absent

    if admission.default is not Admission.default and set(admission.operations) <= {"DELETE"}:
        refuse(name, "has default, which is never called for DELETE: add CREATE or UPDATE to its operations")
    if not admission.handlers():
        refuse(name, "has no handler for its operations: define default, validate or validate_delete")
    for resource, kind in zip(admission.resources(), admission.kinds(operator.group), strict=True):
        _check_kind(admission, operator, kind, own=isinstance(resource, type))
        check_fields(name, admission.match_conditions.values(), kind, schemas)
    for subresource in admission.subresources:
        if not re.fullmatch("[a-z]+", subresource):
            refuse(name, f"names the subresource {subresource!r}: name each, for example 'status'")
    if taken := {*OWN_CONDITIONS} & admission.match_conditions.keys():
        refuse(name, f"has a match condition called {min(taken)!r}, which every webhook has: choose another name")


def warnings(operator: Operator, documents: Sequence[Resource]) -> Iterator[str]:
    """The risks of these documents, which are the operator's manifest: one sentence each."""
    webhooks = [webhook for each in documents for webhook in each.get("webhooks", ())]
    closed = dict.fromkeys(each["name"] for each in webhooks if each.get("failurePolicy") == "Fail")
    single = any(each["kind"] == "Deployment" and each["spec"].get("replicas") == 1 for each in documents)
    converted = ", ".join(hub.kind for hub in operator.converted)
    for lost in (
        f"all writes that {', '.join(closed)} reviews are refused" if closed else "",
        f"{converted} can be read and written in its stored version only" if converted else "",
    ):
        if single and lost:
            yield f"the operator has one replica, and while it restarts {lost}: use Deploy(replicas=2)"
    if converted and operator.namespaced:
        yield (
            f"a cluster has one converter of {converted}: install this operator in one namespace only, or handle all "
            'namespaces with watch="all"'
        )


def _check_kind(admission: type[Admission[Any]], operator: Operator, kind: Kind, *, own: bool) -> None:
    name = admission.__name__
    if kind.namespace or kind.label_selector or kind.field_selector:
        refuse(name, f"selects objects of {kind.kind}: use match_conditions or the selectors of the class instead")
    if "*" in f"{kind.api_version} {kind.plural}":
        refuse(name, f"names {kind.plural} of {kind.api_version}: name each group, version and kind")
    reason = NEVER.get(kind.resource) or NEVER.get(kind.group)
    if reason:
        refuse(name, f"reviews {kind.resource}, which no webhook may hold up: {reason}")
    if own or not admission.fails_closed():
        return
    closed = f"fails closed for {kind.resource}"
    if ESSENTIAL & {kind.resource, kind.group}:
        refuse(name, f"{closed}, without which no cluster can be repaired while it is down: leave failure_policy out")
    if operator.namespaced:
        refuse(
            name, f"{closed} where the operator itself must start: leave failure_policy out, or watch all namespaces"
        )
