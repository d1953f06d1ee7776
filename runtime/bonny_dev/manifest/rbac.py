"""RBAC: the permissions that an operator needs, from the declarations of its controllers.

You need it to see or check permissions: `grants(operator, namespace="widgets")`.
You do not need it to ask for more: write `rules` on the controller.

An operator is granted exactly the requests that the runtime makes:

- handled kinds: get, list, watch; your own kinds also patch of `<plural>/status`;
- handled kinds of controllers that define `finalize`, or have a `Finalizer` step: also patch;
- kinds in `owns`: get, list, watch, create, patch; delete where dropped ones are pruned or cleaned up; and of their
  owners, update of `<plural>/finalizers`, which clusters with OwnerReferencesPermissionEnforcement
  require for a blocking owner reference;
- kinds in `related`: get, list, watch;
- events about handled objects: create, patch; about those without a namespace they are in `default`;
- the operator's Lease in its own namespace: get, update, and create;
- servers and periodic tasks: what they declare; extras: what each says itself (`bonny.extras.Extra.rules`);
- `rules`, as they are written. A wildcard is refused: its meaning may change with an upgrade.

Rules for namespaced kinds go where the operator watches: into a ClusterRole for all namespaces, else into a Role each.
Namespaces that join by their labels (`watch` is a NamespaceSelector) count as all, or as `SELECTED`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

from bonny.controller import Controller
from bonny.errors import OptionError
from bonny.events import DEFAULT_NAMESPACE, EVENT, EVENT_VERBS
from bonny.extras import of_operator
from bonny.kinds import Kind, Scope, builtin_kinds
from bonny.operator import Operator
from bonny.resource import Resource
from bonny.run.leader import LEASE

CLUSTER: Final = ""
"""Instead of a namespace: the rules of the ClusterRole."""

SELECTED: Final = "(selected)"
"""Instead of a namespace: the rules in each namespace that is selected by its labels."""

READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "patch")
# For readers: from looking to destroying; verbs that are not here follow by name.
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
_KEYS: Final = frozenset(("apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs"))


class Permission(NamedTuple):
    """One verb on one resource; a non-resource URL stands for a resource, and begins with a slash."""

    namespace: str
    """A namespace, or `CLUSTER`."""

    group: str
    resource: str
    names: tuple[str, ...]
    """Of which objects; empty: of all."""

    verb: str


def grants(
    operator: Operator, *, namespace: str, deployed: bool = True, selected: tuple[str, ...] = ()
) -> dict[str, list[Resource]]:
    """The policy rules by namespace, `CLUSTER` for the ClusterRole; merged, sorted, without repetition.

    An operator that is not `deployed` is out of the API server's reach, and needs no certificate. `selected`: where the
    rules for namespaces that join by their labels are granted; default: in all.
    Raises: `OptionError` naming the controller whose `rules` cannot be granted.
    """
    watched, election = operator.watched(namespace) or selected or None, operator.deploy.leader_election
    return needs(operator, namespace=namespace, watched=watched, leader_election=election, deployed=deployed)


def needs(
    operator: Operator,
    *,
    namespace: str,
    watched: tuple[str, ...] | None,
    leader_election: bool,
    deployed: bool = False,
) -> dict[str, list[Resource]]:
    """As `grants`, for an operator that runs with other settings than its manifest."""
    everywhere: tuple[str, ...] = watched or (CLUSTER,)
    wanted: set[Permission] = set()
    for controller in operator.controllers:
        wanted.update(_of_controller(operator, controller, everywhere))
    if leader_election:
        for names, verb in (((operator.name,), "get"), ((operator.name,), "update"), ((), "create")):
            # A create cannot be bound to a name: permissions are checked before the name is there.
            wanted.add(Permission(namespace, LEASE.group, LEASE.plural, names, verb))
    rules = [
        each
        for extra in of_operator(operator)
        for each in extra.rules(operator, namespace=namespace, deployed=deployed)
    ]
    for who, where, rule in (*_of_parts(operator), *rules):
        wanted.update(_extra(rule, who, everywhere if where is None else (where,)))
    return as_rules(wanted)


def _of_parts(operator: Operator) -> Iterator[tuple[str, str | None, Resource]]:
    """RBAC rules of servers and tasks: name, namespace (None: where the operator watches), rule."""
    for server in operator.servers:
        for rule in server.all_rules(operator.group):
            yield server.__name__, server.kind(operator.group).namespace, rule
    for task in operator.tasks:
        for rule in task.rules:
            yield task.id, None, rule


def missing_lines(missing: Iterable[Permission]) -> list[str]:
    """The rules to add, one line each, with their roles."""
    return [
        f"add to {'the ClusterRole' if namespace == CLUSTER else f'the Role in {namespace}'}: {rule_text(rule)}"
        for namespace, rules in as_rules(missing).items()
        for rule in rules
    ]


def as_rules(wanted: Iterable[Permission]) -> dict[str, list[Resource]]:
    """Policy rules by namespace that grant these permissions and no others."""
    by_namespace: dict[str, set[Permission]] = {}
    for permission in wanted:
        by_namespace.setdefault(permission.namespace, set()).add(permission)
    for namespace in by_namespace.keys() - {CLUSTER}:
        # A permission that is granted everywhere is not granted in one namespace again.
        everywhere = by_namespace.get(CLUSTER, ())
        by_namespace[namespace] -= {permission._replace(namespace=namespace) for permission in everywhere}
    return {namespace: _merged(granted) for namespace, granted in sorted(by_namespace.items()) if granted}


def permissions(rules: Mapping[str, Iterable[Resource]]) -> Iterator[Permission]:
    """The permissions that policy rules by namespace grant: the reverse of `as_rules`."""
    for namespace, rule in ((namespace, rule) for namespace, granted in rules.items() for rule in granted):
        names = tuple(sorted(rule.get("resourceNames", ())))
        resources = [*product(rule.get("apiGroups", ()), rule.get("resources", ()))]
        urls = [("", url) for url in rule.get("nonResourceURLs", ())]
        for (group, resource), verb in product(resources + urls, rule.get("verbs", ())):
            yield Permission(namespace, group, resource, names, verb)


def _of_controller(
    operator: Operator, controller: type[Controller[Any]], everywhere: tuple[str, ...]
) -> Iterator[Permission]:
    finalizes = bool(operator.finalizers(controller))
    for declared, kind in zip(controller.resources(), controller.kinds(operator.group), strict=True):
        if not isinstance(declared, Kind) and declared.status_model() is not None:
            yield from _on(kind, ("patch",), everywhere, subresource="/status")
        yield from _on(kind, (*READ, "patch") if finalizes else READ, everywhere)
        if controller.owns:
            yield from _on(kind, ("update",), everywhere, subresource="/finalizers")
        home = kind.namespace if kind.namespaced else DEFAULT_NAMESPACE
        yield from _on(replace(EVENT, namespace=home), EVENT_VERBS, everywhere)
    for owned in controller.owns:
        deletes = ("delete",) if finalizes or (owned.prune and operator.prunes(controller)) else ()
        yield from _on(owned, READ + WRITE + deletes, everywhere)
    for related in controller.related:
        yield from _on(related, READ, everywhere)
    for rule in controller.rules:
        yield from _extra(rule, controller.__name__, everywhere)


def _on(
    kind: Kind, verbs: Iterable[str], everywhere: tuple[str, ...], *, subresource: str = ""
) -> Iterator[Permission]:
    if not kind.namespaced:
        namespaces: tuple[str, ...] = (CLUSTER,)
    else:
        namespaces = everywhere if kind.namespace is None else (kind.namespace,)
    for namespace, verb in product(namespaces, verbs):
        yield Permission(namespace, kind.group, f"{kind.plural}{subresource}", (), verb)


def _extra(rule: Resource, controller: str, everywhere: tuple[str, ...]) -> Iterator[Permission]:
    """A rule as a Role writes it; resources of unknown scope count as namespaced."""
    where = f"a rule of {controller} ({json.dumps(rule)})"
    unknown = sorted(rule.keys() - _KEYS)
    if unknown:
        raise OptionError(f"{where} has the key {unknown[0]!r}: use {', '.join(sorted(_KEYS))}")
    for key, values in rule.items():
        if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
            example = json.dumps(values if isinstance(values, str) else "get")
            raise OptionError(f"{where}: {key} is not a list of strings: write for example [{example}]")
    if any("*" in value for values in rule.values() for value in values):
        raise OptionError(f"{where} has a wildcard: name each group, resource and verb")
    granted = [*permissions({CLUSTER: [rule]})]
    if not granted:
        raise OptionError(f"{where} grants nothing: give it verbs, and apiGroups with resources or nonResourceURLs")
    for permission in granted:
        group, resource = permission.group, permission.resource
        is_of_cluster = resource.startswith("/") or resource_scope(group, resource) is Scope.CLUSTER
        for namespace in (CLUSTER,) if is_of_cluster else everywhere:
            yield permission._replace(namespace=namespace)


@cache
def resource_scope(group: str, resource: str) -> Scope | None:
    """The scope of a built-in resource as RBAC rules name it, such as `pods/log`; None for other resources."""
    kinds, plural = (Kind(*each) for each in builtin_kinds()), resource.partition("/")[0]
    return next((kind.scope for kind in kinds if (kind.group, kind.plural) == (group, plural)), None)


def _merged(grants_here: set[Permission]) -> list[Resource]:
    """As few rules as possible with the same meaning: one for all resources of a group that have the same verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for grant in grants_here:
        if not grant.names or grant._replace(names=()) not in grants_here:
            verbs.setdefault((grant.group, grant.resource, grant.names), set()).add(grant.verb)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), allowed in sorted(verbs.items()):
        resources.setdefault((group, names, _in_order(allowed)), []).append(resource)
    rules = sorted((group, members, names, allowed) for (group, names, allowed), members in resources.items())
    return [_rule(*rule) for rule in rules]


def _rule(group: str, members: list[str], names: tuple[str, ...], verbs: tuple[str, ...]) -> Resource:
    if members[0].startswith("/"):
        return {"nonResourceURLs": members, "verbs": list(verbs)}
    rule: Resource = {"apiGroups": [group], "resources": members}
    if names:
        rule["resourceNames"] = list(names)
    return {**rule, "verbs": list(verbs)}


def _in_order(verbs: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(verbs, key=lambda verb: (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)))


def rule_text(rule: Resource) -> str:
    """A policy rule as one line of YAML, to paste into a Role or ClusterRole."""
    values_by_key = {
        key: f"[{', '.join(values)}]" if key == "verbs" else json.dumps(values) for key, values in rule.items()
    }
    return f"- {{{', '.join(f'{key}: {text}' for key, text in values_by_key.items())}}}"
