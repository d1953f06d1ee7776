"""Grouping: which objects of a manifest share a file, in the folders of Helm and kustomize."""

from __future__ import annotations

from typing import Final

from bonny.naming import kebab_case
from bonny.resource import Resource

CRD: Final = "CustomResourceDefinition"
CRDS: Final = "crds"
FILES: Final = {
    CRD: CRDS,
    "ServiceAccount": "operator",
    "Deployment": "operator",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    # The last, so that no write waits for a webhook that is not there yet.
    "ValidatingWebhookConfiguration": "webhooks",
    "MutatingWebhookConfiguration": "webhooks",
}
POLICIES: Final = "admissionregistration.k8s.io/"


def file_of(each: Resource) -> str:
    """The name of its file, without the suffix: `rbac` for a Role, `network-policy` for a NetworkPolicy."""
    if name := FILES.get(each["kind"]):
        return name
    return "policies" if each["apiVersion"].startswith(POLICIES) else kebab_case(each["kind"])
