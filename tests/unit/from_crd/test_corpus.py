"""Definitions of others, in a folder that BONNY_CRDS names: each version becomes classes, with what differs.

BONNY_CRDS=FOLDER pytest -s tests/unit/from_crd/test_corpus.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bonny_dev.from_crd.port import port
from bonny_dev.from_crd.reading import read_crd

FOLDER = os.environ.get("BONNY_CRDS", "")
FILES = sorted(Path(FOLDER).rglob("*.yaml")) if FOLDER else []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_definition_of_others_becomes_classes(path: Path) -> None:
    crd, _ = read_crd(str(path))
    name = crd["metadata"]["name"]

    for version in crd["spec"]["versions"]:
        ported = port(crd, group="example.com", version=version["name"])
        chosen = [each for each in ported.differences if each.startswith(f"{version['name']} ")]
        classes = ported.modules[version["name"]].count("\nclass ")
        print(f"\n{name} {version['name']}: {classes} classes, {len(chosen)} differences", *chosen, sep="\n  ")
