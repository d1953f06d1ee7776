"""Permissions of `prove`: what is lacking, and what no life needed, with plain requests."""

from __future__ import annotations

from bonny import Axn, Controller, Operator, Owned
from bonny_dev.manifest.rbac import CLUSTER, Permission
from bonny_dev.prove.permissions import NO_SAMPLE, OF_DELETIONS, OF_EVENTS, OF_LEASES, Permissions, used_by
from bonny_dev.testing.faults import ProxiedRequest
from tests.broken.lamp import Lamp

LIFE = "prove-1"
MAPS = f"/api/v1/namespaces/{LIFE}/configmaps"
LAMPS = f"/apis/broken.example.com/v1/namespaces/{LIFE}/lamps"


class LampController(Controller[Lamp]):
    """Owns ConfigMaps, and may read Secrets."""

    owns = (Owned("v1", "ConfigMap"),)
    rules = ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]},)

    async def reconcile(self, axn: Axn[Lamp]) -> None:
        """Do nothing."""


operator = Operator(name="lamps", group="broken.example.com", controllers=[LampController], crds=[Lamp])


def asked(method: str, path: str, status: int = 200, **query: str) -> ProxiedRequest:
    return ProxiedRequest(method, path, query, 0.0, status)


def used(*requests: ProxiedRequest) -> set[Permission]:
    return used_by(requests, operator, namespace=LIFE)


EVERYTHING = (
    asked("GET", LAMPS),
    asked("PATCH", f"{LAMPS}/desk/status"),
    asked("GET", MAPS, watch="true"),
    asked("PATCH", f"{MAPS}/desk", 201),
    asked("DELETE", f"{MAPS}/desk"),
    asked("GET", f"/api/v1/namespaces/{LIFE}/secrets/key"),
    asked("POST", f"/api/v1/namespaces/{LIFE}/secrets", 201),
)


def test_the_namespace_of_a_life_stands_for_all_and_a_created_object_needs_both_verbs() -> None:
    assert used(asked("PATCH", f"{MAPS}/desk", 201)) == {
        Permission(CLUSTER, "", "configmaps", ("desk",), "patch"),
        Permission(CLUSTER, "", "configmaps", ("desk",), "create"),
    }


def test_a_request_without_a_permission_is_named_once_with_the_rule_to_add() -> None:
    permissions = Permissions(operator)
    refused = used(asked("DELETE", f"/api/v1/namespaces/{LIFE}/secrets/key", 403))

    assert permissions.lacking(used(*EVERYTHING)) == []
    assert permissions.lacking(refused) == [
        'add to the ClusterRole: - {apiGroups: [""], resources: ["secrets"], verbs: [delete]}'
    ]
    assert permissions.lacking(refused) == []


def test_an_apply_that_is_refused_lacks_its_creation_only_where_patches_are_granted() -> None:
    def applied(path: str) -> set[Permission]:
        return used(asked("PATCH", path, 403, force="true"))

    secret = f"/api/v1/namespaces/{LIFE}/secrets/key"

    assert applied(f"{MAPS}/desk") == {Permission(CLUSTER, "", "configmaps", ("desk",), "create")}
    assert applied(secret) == {Permission(CLUSTER, "", "secrets", ("key",), "patch")}
    assert {each.verb for each in applied(f"{LAMPS}/desk/status")} == {"patch"}
    assert {each.verb for each in used(asked("PATCH", f"{MAPS}/desk", 403))} == {"patch"}


def test_rules_of_a_person_that_no_life_needed_are_to_be_removed() -> None:
    permissions = Permissions(operator)
    permissions.lacking(used(*EVERYTHING[:-1]))

    written, _ = permissions.needless()

    assert written == ["no life needed this rule: create of secrets; remove it, or add a sample that needs it"]


def test_rules_of_the_runtime_that_no_life_needed_have_a_reason() -> None:
    permissions = Permissions(operator)
    permissions.lacking(used(*EVERYTHING[:3], *EVERYTHING[5:]))

    written, of_runtime = permissions.needless()

    assert written == []
    assert of_runtime == [
        f"not needed by any life, and kept: create, patch of configmaps; {NO_SAMPLE}",
        f"not needed by any life, and kept: delete of configmaps; {OF_DELETIONS}",
        f"not needed by any life, and kept: create, patch of events.events.k8s.io; {OF_EVENTS}",
        f"not needed by any life, and kept: create, get, update of leases.coordination.k8s.io; {OF_LEASES}",
    ]
