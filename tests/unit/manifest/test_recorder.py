"""Recorder: the permissions that requests need, beside those that are granted."""

from __future__ import annotations

import json

import pytest
import yaml

from bonny import Axn, Deploy, Operator
from bonny.api import Spec, Version
from bonny.client.metering import Requests
from bonny.controller import Controller
from bonny.resource import Resource
from bonny_dev.manifest.rbac import CLUSTER, as_rules, permissions
from bonny_dev.manifest.recorder import PermissionRecorder, record_permissions

CONFIG_MAPS = "/api/v1/namespaces/a/configmaps"


class Widget(Version):
    """A kind without a status."""

    kind = "Widget"
    version = "v1"
    spec: Spec


class Watching(Controller[Widget]):
    """Reads its kind."""

    async def reconcile(self, axn: Axn[Widget]) -> None:
        """Does nothing."""


def operator() -> Operator:
    return Operator(name="o", group="example.com", controllers=[Watching], deploy=Deploy(leader_election=False))


def rule(resource: str, *verbs: str, group: str = "", names: tuple[str, ...] = ()) -> Resource:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [resource], **named, "verbs": list(verbs)}


def recorder(*requests: tuple[str, str, int | None], query: dict[str, str] | None = None) -> PermissionRecorder:
    """One that saw requests: method, path, status."""
    made = PermissionRecorder()
    for method, path, status in requests:
        made.saw(method, path, query or {}, status)
    return made


def test_what_is_asked_for_and_granted_is_no_difference() -> None:
    seen = recorder(("GET", f"{CONFIG_MAPS}/c", 200), ("PATCH", f"{CONFIG_MAPS}/c", 200))

    for place in (CLUSTER, "a"):
        compared = seen.compared_with({place: [rule("configmaps", "get", "patch")]})
        assert (compared.missing, compared.unused) == ({}, {})
        assert str(compared) == "permissions: used and granted are the same\n"


def test_what_is_used_but_not_granted_is_a_rule_to_add() -> None:
    seen = recorder(
        ("GET", f"{CONFIG_MAPS}/c", 403), ("DELETE", f"{CONFIG_MAPS}/c", None), ("POST", "/api/v1/nodes", 403)
    )

    compared = seen.compared_with({"b": [rule("configmaps", "get", "delete")]})

    assert compared.missing == {CLUSTER: [rule("nodes", "create")], "a": [rule("configmaps", "get", "delete")]}
    assert compared.unused == {"b": [rule("configmaps", "get", "delete")]}


def test_an_apply_that_creates_needs_both_verbs() -> None:
    granted = {"a": [rule("configmaps", "patch")]}

    assert recorder(("PATCH", f"{CONFIG_MAPS}/c", 200)).compared_with(granted).missing == {}
    created = recorder(("PATCH", f"{CONFIG_MAPS}/c", 201)).compared_with(granted)
    assert created.missing == {"a": [rule("configmaps", "create")]}


def test_a_rule_for_named_objects_covers_these_alone() -> None:
    granted = {"a": [rule("configmaps", "get", "list", "create", names=("c",))]}

    assert recorder(("GET", f"{CONFIG_MAPS}/c", 200)).compared_with(granted).missing == {}
    assert recorder(("GET", f"{CONFIG_MAPS}/d", 403)).compared_with(granted).missing == {
        "a": [rule("configmaps", "get")]
    }
    assert recorder(("POST", CONFIG_MAPS, 403)).compared_with(granted).missing == {"a": [rule("configmaps", "create")]}
    one = recorder(("GET", CONFIG_MAPS, 200), query={"fieldSelector": "metadata.name=c"})
    assert one.compared_with(granted).missing == {}


def test_get_list_and_watch_are_one_permission_where_all_are_granted() -> None:
    seen = recorder(("GET", CONFIG_MAPS, 200), query={"watch": "true"})

    assert seen.compared_with({"a": [rule("configmaps", "get", "list", "watch")]}).unused == {}
    assert seen.compared_with({"a": [rule("configmaps", "get", "watch")]}).unused == {"a": [rule("configmaps", "get")]}
    assert recorder().compared_with({"a": [rule("configmaps", "get", "list", "watch")]}).unused == {
        "a": [rule("configmaps", "get", "list", "watch")]
    }


def test_what_no_request_can_show_is_not_called_unused() -> None:
    granted = [
        rule("widgets/finalizers", "update", group="example.com"),
        rule("clusterroles", "bind", "escalate", group="rbac.authorization.k8s.io"),
    ]

    assert recorder().compared_with({CLUSTER: granted}).unused == {}


def test_what_every_user_may_do_is_not_called_missing() -> None:
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    assert recorder(("GET", "/version", 200), ("GET", "/apis/apps/v1", 200), ("POST", reviews, 201)).used == set()


def test_other_urls_are_permissions_of_their_own() -> None:
    seen = recorder(("GET", "/metrics", 403), ("GET", "/apiary", 403))

    assert seen.compared_with({}).missing == {CLUSTER: [{"nonResourceURLs": ["/apiary", "/metrics"], "verbs": ["get"]}]}
    assert seen.compared_with({CLUSTER: [{"nonResourceURLs": ["/apiary", "/metrics"], "verbs": ["get"]}]}).missing == {}


def test_the_text_holds_each_rule_once_for_python_and_for_yaml() -> None:
    seen = recorder(*(("GET", f"/api/v1/namespaces/{place}/secrets/s", 403) for place in ("b", "a")))

    *others, title, line = str(seen.compared_with({"c": [rule("pods", "delete")]})).splitlines()

    assert title == "permissions used but not granted; add to `rules` of the controller that needs them:"
    assert line == '  {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}  # in a, b'
    assert yaml.safe_load(line) == json.loads(line.partition("#")[0]) == rule("secrets", "get")
    assert others == [
        "permissions granted but never used this time:",
        '  {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]}  # in c',
    ]


def test_rules_taken_apart_and_put_together_again_are_the_same() -> None:
    rules = {
        CLUSTER: [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, rule("pods", "get", "list")],
        "a": [rule("leases", "get", "update", group="coordination.k8s.io", names=("o",))],
    }

    assert as_rules(permissions(rules)) == rules


def test_every_client_of_the_process_is_heard_until_the_block_ends() -> None:
    requests = Requests()
    path = "/apis/example.com/v1/widgets"
    with record_permissions() as outer, record_permissions() as inner:
        with requests.under_way("GET", path, {"watch": "true"}) as request:
            request.answered(200)
        with pytest.raises(OSError, match="gone"), requests.under_way("DELETE", f"{path}/w", None):
            raise OSError("gone")
    with requests.under_way("POST", path, None) as request:
        request.answered(201)

    assert {permission.verb for permission in outer.used} == {"watch", "delete"}
    assert inner.used == outer.used
    compared = outer.compared_with_manifest(operator())
    assert compared.missing == {CLUSTER: [rule("widgets", "delete", group="example.com")]}
    assert compared.unused == {CLUSTER: [rule("events", "create", "patch", group="events.k8s.io")]}
