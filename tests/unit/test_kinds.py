"""Kinds: what is known of built-in kinds, and what must be named."""

from __future__ import annotations

import pytest

from bonny.errors import OptionError
from bonny.kinds import Kind, Owned, Related, Scope, builtin
from bonny.resource import Resource
from bonny_dev.manifest.rbac import resource_scope


@pytest.mark.parametrize(
    ("api_version", "kind", "resource", "namespaced"),
    [
        ("v1", "ConfigMap", "configmaps", True),
        ("v1", "Node", "nodes", False),
        ("v1", "Endpoints", "endpoints", True),
        ("apps/v1", "Deployment", "deployments.apps", True),
        ("networking.k8s.io/v1", "IngressClass", "ingressclasses.networking.k8s.io", False),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions.apiextensions.k8s.io",
            False,
        ),
    ],
)
def test_plural_and_scope_of_a_built_in_kind_are_known(
    api_version: str, kind: str, resource: str, namespaced: bool
) -> None:
    found = Kind(api_version, kind)

    assert found.resource == resource
    assert found.namespaced is namespaced


def test_group_and_version_are_read_from_the_api_version() -> None:
    assert (Kind("apps/v1", "Deployment").group, Kind("apps/v1", "Deployment").version) == ("apps", "v1")
    assert (Kind("v1", "Pod").group, Kind("v1", "Pod").version) == ("", "v1")


def test_a_kind_of_somebody_else_names_plural_and_scope() -> None:
    certificate = Kind("cert-manager.io/v1", "Certificate", plural="certificates", scope=Scope.NAMESPACED)

    assert certificate.resource == "certificates.cert-manager.io"


def test_a_kind_that_is_not_known_says_what_to_name() -> None:
    with pytest.raises(OptionError, match=r"Certificate \(cert-manager.io/v1\) are not known: give both, .*plural="):
        Kind("cert-manager.io/v1", "Certificate")


@pytest.mark.parametrize(
    ("api_version", "kind", "advice"),
    [
        ("v1", "ConfigMpa", "did you mean ConfigMap?"),
        ("v1", "configmap", "did you mean ConfigMap?"),
        ("apps/v1", "ConfigMap", "it is in v1"),
        ("apps/v1beta1", "Deployment", "it is in apps/v1"),
        ("apps/v1", "ConfigMaps", "did you mean ConfigMap in v1?"),
        ("networking.k8s.io/v1", "Ingres", "did you mean Ingress?"),
        ("v1", "Event2", "did you mean Event?"),
        ("v1", "Zzz", "correct the kind or the API version"),
    ],
)
def test_a_misspelt_or_misplaced_kind_of_kubernetes_is_corrected(api_version: str, kind: str, advice: str) -> None:
    with pytest.raises(OptionError) as refused:
        Owned(api_version, kind)

    assert str(refused.value) == f"Kubernetes has no kind {kind!r} in {api_version}: {advice}"


@pytest.mark.parametrize("api_version", ["example.com/v1", "networking.k8s.io/v1"])
def test_a_kind_that_a_crd_may_define_is_not_taken_for_another(api_version: str) -> None:
    with pytest.raises(OptionError, match="are not known: give both"):
        Owned(api_version, "Zzz")

    assert Kind("v1", "Pof", plural="pofs", scope=Scope.NAMESPACED).plural == "pofs"


@pytest.mark.parametrize("api_version", ["", "/v1", "apps/", "a/b/c"])
def test_an_api_version_of_another_form_is_refused(api_version: str) -> None:
    with pytest.raises(OptionError, match="not of the form group/version"):
        Kind(api_version, "Deployment")


def test_a_cluster_scoped_kind_has_no_namespace() -> None:
    with pytest.raises(OptionError, match="cluster-scoped and has no namespace: leave out namespace='default'"):
        Kind("v1", "Node", namespace="default")


def test_equal_kinds_are_one_key_of_a_dictionary() -> None:
    assert len({Kind("v1", "Pod"), Kind("v1", "Pod"), Kind("v1", "Pod", namespace="a")}) == 2


def test_a_related_kind_with_indexes_is_a_key_of_a_dictionary() -> None:
    def keys(_: Resource) -> list[str]:
        return []

    one, same = (Related("v1", "Pod", keys=keys, indexes={"app": "app"}) for _ in range(2))
    assert len({one, same, Related("v1", "Pod", keys=keys)}) == 2


def test_an_owned_kind_is_a_kind() -> None:
    assert isinstance(Owned("v1", "Secret"), Kind)
    assert Owned("v1", "Secret").plural == "secrets"


def test_a_kind_that_is_not_built_in_is_not_in_the_table() -> None:
    assert builtin("v1", "Widget") is None


@pytest.mark.parametrize(
    ("group", "resource", "scope"),
    [
        ("", "nodes", Scope.CLUSTER),
        ("", "pods/log", Scope.NAMESPACED),
        ("apps", "deployments", Scope.NAMESPACED),
        ("example.com", "widgets", None),
    ],
)
def test_the_scope_of_a_resource_is_found_by_its_plural(group: str, resource: str, scope: Scope | None) -> None:
    assert resource_scope(group, resource) is scope
