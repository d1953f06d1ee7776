"""Kustomize: a base with the objects of the manifest, and an overlay to begin with, which belongs to the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import yaml

from bonny.resource import Resource

from ..manifest.bundle import to_yaml
from .folder import Folder
from .grouping import CRDS, file_of
from .image import Image

HEAD: Final = "# Written by `invoke manifest --format kustomize`: change an overlay instead.\n"
OVERLAY: Final = "overlays/production/kustomization.yaml"
OVERLAY_HEAD: Final = """\
# Yours: once you change it, `invoke manifest --format kustomize` leaves it as it is. Add overlays beside it.
# The namespace is that of the base (`--namespace`): it stands in permissions and policies, where kustomize's
# `namespace:` does not change it.
"""


def base(objects: Iterable[Resource], *, replicas: int, image: str) -> Folder:
    """The files of `base/`, with the CRDs as a base of their own in `base/crds/`, and of one overlay.

    `objects` come from `manifest.bundle.documents`, with `image`.
    """
    objects = [*objects]
    groups: dict[str, list[Resource]] = {}
    for each in objects:
        groups.setdefault(file_of(each), []).append(each)
    generated = {f"base/{_path(name)}": to_yaml(members) for name, members in groups.items()}
    if CRDS in groups:
        generated["base/crds/kustomization.yaml"] = HEAD + _kustomization(resources=["crds.yaml"])
    resources = [CRDS if name == CRDS else f"{name}.yaml" for name in groups]
    # In the order of the manifest, each object after what it needs.
    generated["base/kustomization.yaml"] = HEAD + _kustomization(resources=resources, sortOptions={"order": "fifo"})
    return Folder(generated=generated, own={OVERLAY: OVERLAY_HEAD + _overlay(objects, replicas, Image.of(image))})


def _path(name: str) -> str:
    return "crds/crds.yaml" if name == CRDS else f"{name}.yaml"


def _overlay(objects: Iterable[Resource], replicas: int, image: Image) -> str:
    deployments = [each["metadata"]["name"] for each in objects if each["kind"] == "Deployment"]
    changed = {"digest": image.digest} if image.digest else {"newTag": image.tag} if image.tag else {}
    return _kustomization(
        resources=["../../base"],
        sortOptions={"order": "fifo"},
        images=[{"name": image.repository, **changed}],
        replicas=[{"name": name, "count": replicas} for name in deployments[:1]],
    )


def _kustomization(**fields: Any) -> str:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return str(yaml.safe_dump({**head, **fields}, sort_keys=False))
