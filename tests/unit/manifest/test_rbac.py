"""RBAC: what is granted for what a controller declares, and where."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from bonny import Axn, Controller, Deploy, Operator
from bonny.api import Scope, Spec, Status, Version
from bonny.errors import OptionError
from bonny.kinds import Kind, Owned, Related
from bonny.resource import Resource
from bonny.steps import Finalizer, PruneDescendants
from bonny_dev.manifest.rbac import CLUSTER, Permission, grants, missing_lines


class WidgetSpec(Spec):
    """What the user wants."""


class WidgetStatus(Status):
    """What the operator reports."""


class Widget(Version):
    """Namespaced, with a status."""

    kind = "Widget"
    version = "v1"
    spec: WidgetSpec
    status: WidgetStatus


class Realm(Version):
    """Cluster-scoped, without a status."""

    kind = "Realm"
    version = "v1"
    scope = Scope.CLUSTER
    spec: WidgetSpec


async def handler(*_: Any) -> None:
    """Not called here."""


def handling(kind: type[Version] | Kind, *handlers: str, **attributes: Any) -> type[Controller[Any]]:
    """A controller of `kind`, which defines these handlers."""
    attributes |= {"resource": kind, **dict.fromkeys(handlers, handler)}
    return type(
        f"{kind.kind}{(kind.namespace or '') if isinstance(kind, Kind) else ''}Controller", (Controller,), attributes
    )


EVENTS = "events.k8s.io/events: create patch"


def granted(*controllers: type[Controller[Any]], **options: Any) -> dict[str, list[Resource]]:
    """What an operator in the namespace `here` is granted; it has no steps but those that are given."""
    given: dict[str, Any] = {"deploy": Deploy(leader_election=False), "steps": (), **options}
    return grants(
        Operator(name="widgets-operator", group="example.com", controllers=controllers, **given), namespace="here"
    )


def all_rules_of(*controllers: type[Controller[Any]], **options: Any) -> dict[str, list[str]]:
    """The rules in one line each, by place."""
    found = granted(*controllers, **options)
    return {place: [_line(rule) for rule in rules] for place, rules in found.items()}


def rules_of(*controllers: type[Controller[Any]], **options: Any) -> dict[str, list[str]]:
    """The same without those for events, which have tests of their own."""
    found = all_rules_of(*controllers, **options)
    others = {place: [rule for rule in rules if rule != EVENTS] for place, rules in found.items()}
    return {place: rules for place, rules in others.items() if rules}


def _line(rule: Resource) -> str:
    if "nonResourceURLs" in rule:
        return f"{' '.join(rule['nonResourceURLs'])}: {' '.join(rule['verbs'])}"
    names = "".join(f" {name!r}" for name in rule.get("resourceNames", ()))
    return f"{rule['apiGroups'][0]}/{','.join(rule['resources'])}{names}: {' '.join(rule['verbs'])}"


def test_an_operator_without_controllers_is_granted_nothing() -> None:
    assert rules_of() == {}


def test_a_kind_of_ones_own_is_read_and_its_status_written() -> None:
    assert rules_of(handling(Widget)) == {
        CLUSTER: ["example.com/widgets: get list watch", "example.com/widgets/status: patch"]
    }


def test_a_kind_without_a_status_gets_no_permission_for_one() -> None:
    assert rules_of(handling(Realm)) == {CLUSTER: ["example.com/realms: get list watch"]}


def test_a_kind_of_others_is_only_read() -> None:
    assert rules_of(handling(Kind("apps/v1", "Deployment"))) == {CLUSTER: ["apps/deployments: get list watch"]}


def test_owned_kinds_are_written_and_their_owner_may_be_named_as_blocking() -> None:
    assert rules_of(handling(Widget, owns=(Owned("v1", "ConfigMap"), Owned("v1", "Secret")))) == {
        CLUSTER: [
            "/configmaps,secrets: get list watch create patch",
            "example.com/widgets: get list watch",
            "example.com/widgets/finalizers: update",
            "example.com/widgets/status: patch",
        ]
    }


def test_dropped_children_may_be_deleted_by_those_who_prune_or_clean_up() -> None:
    owns = (Owned("v1", "ConfigMap"),)
    for asked, step in (("reconcile", PruneDescendants()), ("finalize", Finalizer())):
        assert (
            rules_of(handling(Realm, asked, owns=owns), steps=[step])[CLUSTER][0]
            == "/configmaps: get list watch create patch delete"
        )


def test_children_that_are_not_pruned_may_be_deleted_only_by_those_who_clean_up() -> None:
    owns = (Owned("v1", "ConfigMap", prune=False), Owned("v1", "Secret"))
    assert rules_of(handling(Realm, "reconcile", owns=owns), steps=[PruneDescendants()])[CLUSTER][:2] == [
        "/configmaps: get list watch create patch",
        "/secrets: get list watch create patch delete",
    ]
    assert rules_of(handling(Realm, "finalize", owns=owns), steps=[Finalizer()])[CLUSTER][0] == (
        "/configmaps,secrets: get list watch create patch delete"
    )


def test_finalizers_are_patched_into_the_object_itself() -> None:
    assert rules_of(handling(Realm, "finalize"), steps=[Finalizer()]) == {
        CLUSTER: ["example.com/realms: get list watch patch"]
    }


def test_the_lease_of_a_leader_is_its_own_and_in_its_own_namespace() -> None:
    found = granted(deploy=Deploy())

    assert {place: [_line(rule) for rule in rules] for place, rules in found.items()} == {
        "here": ["coordination.k8s.io/leases: create", "coordination.k8s.io/leases 'widgets-operator': get update"]
    }


def test_related_kinds_are_only_read() -> None:
    related = (Related("v1", "Secret", named_by=lambda widget: ["s"]),)

    assert rules_of(handling(Realm, related=related))[CLUSTER][0] == "/secrets: get list watch"


def test_a_controller_of_one_namespace_is_granted_its_kinds_only_there() -> None:
    class Widgets(Controller[Widget]):
        namespace = "vault"

        async def reconcile(self, axn: Axn[Widget]) -> None:
            """Does nothing."""

    operator = Operator(name="o", group="example.com", controllers=[Widgets], deploy=Deploy(leader_election=False))

    assert list(grants(operator, namespace="here")) == ["vault"]


def test_what_two_controllers_need_is_granted_once() -> None:
    reader = handling(Kind("v1", "ConfigMap"))
    writer = handling(Realm, owns=(Owned("v1", "ConfigMap"),))

    assert rules_of(reader, writer)[CLUSTER][0] == "/configmaps: get list watch create patch"


def test_an_operator_of_one_namespace_gets_a_role_there_and_a_cluster_role_only_for_cluster_scoped_kinds() -> None:
    assert rules_of(handling(Widget), handling(Realm), watch="namespace") == {
        CLUSTER: ["example.com/realms: get list watch"],
        "here": ["example.com/widgets: get list watch", "example.com/widgets/status: patch"],
    }


def test_a_kind_of_one_namespace_is_granted_only_there() -> None:
    assert rules_of(handling(Kind("v1", "Secret", namespace="vault"))) == {"vault": ["/secrets: get list watch"]}


@pytest.mark.parametrize(
    ("handled", "watch", "places"),
    [
        ((Widget,), "all", {CLUSTER}),
        ((Widget,), "namespace", {"here"}),
        ((Realm,), "all", {"default"}),
        ((Realm,), "namespace", {"default"}),
        ((Widget, Realm), "all", {CLUSTER}),
        ((Widget, Realm), "namespace", {"here", "default"}),
        ((Kind("v1", "Secret", namespace="vault"), Widget), "namespace", {"vault", "here"}),
        ((Kind("v1", "Secret", namespace="vault"),), "all", {"vault"}),
        ((), "all", set()),
    ],
)
def test_events_are_written_where_the_handled_objects_are_and_in_default_for_those_without_a_namespace(
    handled: tuple[type[Version] | Kind, ...], watch: str, places: set[str]
) -> None:
    found = all_rules_of(*(handling(known) for known in handled), watch=watch)

    assert {place for place, rules in found.items() if EVENTS in rules} == places


def test_what_is_granted_everywhere_is_not_granted_in_one_place_again() -> None:
    everywhere, vault = Kind("v1", "Secret"), Kind("v1", "Secret", namespace="vault")

    assert all_rules_of(handling(everywhere), handling(vault)).keys() == {CLUSTER}


def test_extra_rules_are_granted_as_they_are_written() -> None:
    rules = (
        {"apiGroups": ["", "example.org"], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["impersonate", "get"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    )

    assert rules_of(handling(Widget, rules=rules), watch="namespace") == {
        CLUSTER: ["/metrics: get", "/nodes: get impersonate"],
        "here": [
            "/events: create",
            "/secrets 'token': get",
            "example.com/widgets: get list watch",
            "example.com/widgets/status: patch",
            "example.org/events: create",
        ],
    }


def test_a_named_object_is_left_out_where_all_objects_are_granted() -> None:
    named = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["token"], "verbs": ["get", "delete"]}

    assert rules_of(handling(Kind("v1", "Secret"), rules=(named,))) == {
        CLUSTER: ["/secrets: get list watch", "/secrets 'token': delete"]
    }


def test_the_order_of_controllers_does_not_matter() -> None:
    several = (
        handling(Widget, owns=(Owned("v1", "ConfigMap"),)),
        handling(Realm, rules=({"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "get"]},)),
        handling(Kind("apps/v1", "Deployment")),
    )

    assert len({str(rules_of(*order)) for order in permutations(several)}) == 1


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]}, "has a wildcard"),
        ({"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}, "has a wildcard"),
        ({"apiGroups": [""], "resources": ["pods/*"], "verbs": ["get"]}, "has a wildcard"),
        ({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}, "has a wildcard"),
        ({"nonResourceURLs": ["/metrics/*"], "verbs": ["get"]}, "has a wildcard"),
        ({"apiGroups": [""], "resources": ["pods"]}, "grants nothing"),
        ({"resources": ["pods"], "verbs": ["get"]}, "grants nothing"),
        ({"apiGroup": [""], "resources": ["pods"], "verbs": ["get"]}, "has the key 'apiGroup': use apiGroups"),
        ({"apiGroups": "", "resources": "pods", "verbs": "get"}, "is not a list"),
    ],
)
def test_a_rule_that_cannot_be_granted_is_refused_with_its_controller(rule: Resource, why: str) -> None:
    with pytest.raises(OptionError, match=f"a rule of WidgetController .*{why}"):
        rules_of(handling(Widget, rules=(rule,)))


def test_a_watch_of_another_word_is_refused() -> None:
    with pytest.raises(OptionError, match="watch of operator widgets-operator is 'some': write 'all', 'namespace' for"):
        rules_of(watch="some")


def test_missing_permissions_are_shown_as_the_rules_to_add_with_their_roles() -> None:
    missing = {
        Permission(CLUSTER, "", "pods", (), "list"),
        Permission(CLUSTER, "", "pods", (), "get"),
        Permission("home", "", "secrets", ("key",), "patch"),
        Permission(CLUSTER, "", "/metrics", (), "get"),
    }
    assert missing_lines(missing) == [
        'add to the ClusterRole: - {nonResourceURLs: ["/metrics"], verbs: [get]}',
        'add to the ClusterRole: - {apiGroups: [""], resources: ["pods"], verbs: [get, list]}',
        'add to the Role in home: - {apiGroups: [""], resources: ["secrets"], resourceNames: ["key"], verbs: [patch]}',
    ]
