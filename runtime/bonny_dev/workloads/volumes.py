"""Volumes: the provisioner of the sandbox. The volume binder of kube-controller-manager asks for a volume and binds it.

The volumes name a CSI driver that does not exist: nothing reads or writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bonny.resource import Resource

DRIVER: Final = "sandbox.bonny.dev"
# The volume binder names here the provisioner from which it expects the volume.
ASKED: Final = "volume.kubernetes.io/storage-provisioner"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"


def storage_class() -> Resource:
    """The default StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "standard", "annotations": {IS_DEFAULT: "true"}},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
    }


def volume_for(claim: Mapping[str, Any]) -> Resource | None:
    """The volume that a claim waits for; None while it waits for none."""
    metadata, spec = claim["metadata"], claim["spec"]
    asked = (metadata.get("annotations") or {}).get(ASKED)
    if not asked or spec.get("volumeName") or metadata.get("deletionTimestamp"):
        return None
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    reference |= {name: metadata[name] for name in ("namespace", "name", "uid")}
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: asked}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": spec.get("storageClassName", ""),
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": reference,
            "csi": {"driver": DRIVER, "volumeHandle": name},
        },
    }


def is_released(volume: Mapping[str, Any]) -> bool:
    """Whether the claim of a volume that the sandbox made is gone."""
    ours = volume["spec"].get("csi", {}).get("driver") == DRIVER and not volume["metadata"].get("deletionTimestamp")
    deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return ours and deletes and volume.get("status", {}).get("phase") == "Released"
