"""A kustomize base: the objects of the manifest in files, and an overlay for the user."""

from __future__ import annotations

import yaml

from bonny import Deploy
from bonny.resource import Resource
from bonny_dev.formats.folder import Folder
from bonny_dev.formats.kustomize import base
from bonny_dev.manifest.bundle import documents
from tests.unit.formats.test_helm import REPOSITORY, operator

IMAGE = f"{REPOSITORY}:1.0.0"


def objects() -> list[Resource]:
    return documents(operator(deploy=Deploy(replicas=2)), image=IMAGE, namespace="lamps")


def made() -> Folder:
    return base(objects(), replicas=2, image=IMAGE)


def test_the_base_names_its_files_in_the_order_of_the_manifest() -> None:
    generated = made().generated
    kustomization = yaml.safe_load(generated["base/kustomization.yaml"])

    assert kustomization["resources"][0] == "namespace.yaml"
    assert kustomization["resources"][-1] == "webhooks.yaml"
    assert "crds" in kustomization["resources"]
    assert yaml.safe_load(generated["base/crds/kustomization.yaml"])["resources"] == ["crds.yaml"]
    files = {f"base/{name}" for name in kustomization["resources"] if name != "crds"}
    assert generated.keys() - files == {
        "base/kustomization.yaml",
        "base/crds/kustomization.yaml",
        "base/crds/crds.yaml",
    }


def test_the_files_hold_the_objects_of_the_manifest() -> None:
    texts = [text for name, text in made().generated.items() if not name.endswith("kustomization.yaml")]
    found = [each for text in texts for each in yaml.safe_load_all(text)]

    assert sorted(found, key=str) == sorted(objects(), key=str)


def test_the_overlay_is_the_users_and_sets_image_and_replicas() -> None:
    ((name, text),) = made().own.items()
    overlay = yaml.safe_load(text)

    assert name == "overlays/production/kustomization.yaml"
    assert overlay["resources"] == ["../../base"]
    assert overlay["images"] == [{"name": REPOSITORY, "newTag": "1.0.0"}]
    assert overlay["replicas"] == [{"name": "lamps-operator", "count": 2}]
