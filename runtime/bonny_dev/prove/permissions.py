"""Permissions: whether an operator is granted what it asks for, and needs what it is granted.

The proxy sees each request of each life. A request without a permission is a bug, in whatever life. A permission that
no request needed shows only that no sample made the operator need it: a permission that the runtime asks for comes with
a reason, and a rule that a person wrote should be removed, or get a sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bonny.events import EVENT
from bonny.operator import Operator
from bonny.resource import Resource, listed
from bonny.run.leader import LEASE

from ..manifest.rbac import CLUSTER, Permission, grants, missing_lines, permissions
from ..manifest.recorder import Comparison, PermissionRecorder, covers
from ..testing.faults import ProxiedRequest

FORBIDDEN: Final = 403
OF_LEASES: Final = "replicas elect a leader with it, and in a life there is one process"
OF_EVENTS: Final = "events need it, and no life had all that can happen to one"
OF_DELETIONS: Final = "the operator deletes a child that its controller registers no more, and no sample leads to that"
NO_SAMPLE: Final = "no sample makes the operator do that"


class Permissions:
    """Permissions that the lives of a run needed so far, beside the grants of the roles of `operator`."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._used: set[Permission] = set()
        self._reported: set[Permission] = set()

    def lacking(self, used: Iterable[Permission]) -> list[str]:
        """Add what a life needed; returns the rules that it lacks, as lines to add, each only once in a run."""
        self._used.update(used)
        new = {*permissions(self._compared().missing)} - self._reported
        self._reported |= new
        return missing_lines(new)

    def needless(self) -> tuple[list[str], list[str]]:
        """Sentences about what no life needed: about `rules` that a person wrote, and about the runtime's own."""
        by_hand = self._written()
        groups: dict[tuple[str, str], list[str]] = {}
        for each in sorted({*permissions(self._compared().unused)}):
            reason = "" if _bare(each) in by_hand else self._reason(each)
            what = f"{each.resource}.{each.group}" if each.group else each.resource
            groups.setdefault((what, reason), []).append(each.verb)
        written, of_runtime = [], []
        for (what, reason), verbs in groups.items():
            told = f"{listed(list(dict.fromkeys(verbs)))} of {what}"
            if reason:
                of_runtime.append(f"not needed by any life, and kept: {told}; {reason}")
            else:
                written.append(f"no life needed this rule: {told}; remove it, or add a sample that needs it")
        return written, of_runtime

    def _compared(self) -> Comparison:
        recorder = PermissionRecorder()
        recorder.used = self._used
        return recorder.compared_with(_grants(self._operator))

    def _written(self) -> set[tuple[str, str, str]]:
        operator = self._operator
        rules = [rule for each in (*operator.controllers, *operator.servers) for rule in each.rules]
        rules += [rule for task in operator.tasks for rule in task.rules]
        return {_bare(each) for each in permissions({CLUSTER: rules})}

    def _reason(self, unused: Permission) -> str:
        """Why the runtime asks for a permission that no life needed."""
        owned = {(kind.group, kind.plural) for each in self._operator.controllers for kind in each.owns}
        match unused.group, unused.resource, unused.verb:
            case (LEASE.group, LEASE.plural, _):
                return OF_LEASES
            case (EVENT.group, EVENT.plural, _):
                return OF_EVENTS
            case (group, resource, "delete") if (group, resource) in owned:
                return OF_DELETIONS
        return NO_SAMPLE


def used_by(requests: Iterable[ProxiedRequest], operator: Operator, *, namespace: str) -> set[Permission]:
    """The permissions that these requests needed; in `namespace`, which one life has, they count as in all.

    An apply that was refused although patches are granted would have created its object.
    """
    used, refused = PermissionRecorder(), PermissionRecorder()
    for each in requests:
        is_refused = each.status == FORBIDDEN and "force" in each.query  # an apply
        (refused if is_refused else used).saw(each.method, each.path, each.query, each.status)
    granted = [*permissions(_grants(operator))]
    asked = {_everywhere(permission, namespace) for permission in used.used}
    for permission in refused.used:
        patch = _everywhere(permission, namespace)
        would_create = "/" not in patch.resource and any(covers(grant, patch) for grant in granted)
        asked.add(patch._replace(verb="create") if would_create else patch)
    return asked


def _everywhere(permission: Permission, namespace: str) -> Permission:
    """A permission in `namespace`, as one in all namespaces."""
    return permission._replace(namespace=CLUSTER) if permission.namespace == namespace else permission


def _grants(operator: Operator) -> dict[str, list[Resource]]:
    return grants(operator, namespace=operator.name, deployed=False)


def _bare(permission: Permission) -> tuple[str, str, str]:
    return permission.group, permission.resource, permission.verb
