"""Comparing definitions: every change that clients notice is named, and spellings that mean the same are not."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bonny.resource import Resource
from bonny_dev.from_crd.compare import differences
from bonny_dev.from_crd.reading import read_crd

AQUARIUM, _ = read_crd(str(Path(__file__).parents[2] / "corpus" / "aquariums.yaml"))
Change = Callable[[Resource, Resource, Resource], Any]


def changed(change: Change) -> list[str]:
    """The differences after a change of the definition, of its first version, or of the fields of the spec."""
    new = deepcopy(AQUARIUM)
    new["spec"]["versions"][0] = version = deepcopy(new["spec"]["versions"][0])
    change(new, version, version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    return differences(AQUARIUM, new)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d, v, f: f["volume"].update(minimum=2), "v1 .spec.volume: minimum is 2, not 1"),
        (lambda d, v, f: f["volume"].pop("maximum"), "v1 .spec.volume: maximum is missing (it was 1000)"),
        (lambda d, v, f: f["class"].update(maxLength=3), "v1 .spec.class: maxLength is new (3)"),
        (lambda d, v, f: f["heated"].update(default=1), "v1 .spec.heated: default is 1, not true"),
        (lambda d, v, f: f["heated"].update(default=False), "v1 .spec.heated: default is false, not true"),
        (lambda d, v, f: f["schema"].update(default=""), 'v1 .spec.schema: default is new ("")'),
        (lambda d, v, f: f.pop("name"), "v1 .spec: lacks name"),
        (lambda d, v, f: f.update(colour={"type": "string"}), "v1 .spec: adds colour"),
        (lambda d, v, f: f["maybe"].pop("nullable"), "v1 .spec.maybe: nullable is missing (it was true)"),
        (
            lambda d, v, f: f["plants"]["items"]["properties"]["pot"].update(format="int32"),
            'v1 .spec.plants[].pot: format is new ("int32")',
        ),
        (
            lambda d, v, f: f["plants"]["items"].update(required=[]),
            'v1 .spec.plants[]: required is missing (it was ["name"])',
        ),
        (
            lambda d, v, f: f["granular"]["additionalProperties"].pop("nullable"),
            "v1 .spec.granular.*: nullable is missing (it was true)",
        ),
        (
            lambda d, v, f: f["granular"].update(additionalProperties=True),
            'v1 .spec.granular: additionalProperties is true, not {"nullable": true, "type": "string"}',
        ),
        (
            lambda d, v, f: f["water"].update({"x-kubernetes-validations": []}),
            "v1 .spec.water: x-kubernetes-validations is missing",
        ),
        (lambda d, v, f: v.update(served=False), "v1: served is false, not true"),
        (lambda d, v, f: v["subresources"].pop("status"), "v1: subresources is"),
        (lambda d, v, f: v.update(additionalPrinterColumns=[]), "v1: columns is missing"),
        (lambda d, v, f: d["spec"].update(scope="Cluster"), 'definition: scope is "Cluster", not "Namespaced"'),
        (lambda d, v, f: d["spec"]["names"].update(shortNames=[]), "definition: shortNames is missing"),
        (lambda d, v, f: d["metadata"]["labels"].clear(), "definition: labels is missing"),
        (lambda d, v, f: d["spec"]["versions"].pop(), "v1beta1: is missing"),
        (lambda d, v, f: d["spec"]["versions"].append(dict(v, name="v2")), "v2: is new"),
    ],
)
def test_a_change_is_named_with_its_place(change: Change, said: str) -> None:
    (found,) = changed(change)

    assert found.startswith(said)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, v, f: f["volume"].update(description="Another text."),
        lambda d, v, f: f["class"].update(nullable=False),
        lambda d, v, f: f["water"]["enum"].reverse(),
        lambda d, v, f: f["rock"].update({"x-kubernetes-map-type": "granular"}),
        lambda d, v, f: f["port"].pop("anyOf"),
        lambda d, v, f: f["lid"].update(default={"open": True}),
        lambda d, v, f: f["plants"].update(default=[{"name": "fern"}]),
        lambda d, v, f: v["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"].append("heated"),
        lambda d, v, f: v["schema"]["openAPIV3Schema"]["properties"].pop("metadata"),
        lambda d, v, f: d["spec"].pop("conversion"),
        lambda d, v, f: d["spec"]["names"].pop("listKind"),
        lambda d, v, f: d["spec"]["names"].update(singular=""),
        lambda d, v, f: d["spec"]["versions"].reverse(),
        lambda d, v, f: d["metadata"]["annotations"].pop("controller-gen.kubebuilder.io/version"),
        lambda d, v, f: d.update(status={"acceptedNames": {}}),
    ],
)
def test_what_means_the_same_is_no_difference(change: Change) -> None:
    assert changed(change) == []
