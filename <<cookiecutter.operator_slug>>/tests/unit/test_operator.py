"""The operator as a whole, without a server: its manifest and its samples."""

from pathlib import Path
from typing import Any

import yaml
from bonny_dev.manifest import bundle

from << cookiecutter.__package >>.operator import operator

SAMPLES = Path(__file__).parents[2] / "samples"
DOCUMENTS = bundle.documents(operator, image="registry.example.com/operator:test", namespace="test", local=False)


def test_the_manifest_grants_no_permission_by_wildcard() -> None:
    rules: list[dict[str, Any]] = [rule for document in DOCUMENTS for rule in document.get("rules", [])]

    assert [rule for rule in rules for names in rule.values() if "*" in names] == []


def test_every_sample_fits_its_version() -> None:
    kinds = {version.as_kind(operator.group): version for version in operator.crds}
    versions = {(kind.api_version, kind.kind): version for kind, version in kinds.items()}

    for path in sorted(SAMPLES.glob("*.yaml")):
        sample = yaml.safe_load(path.read_text("utf-8"))
        if sample["apiVersion"] != "v1":  # Kubernetes' own: a pod for a scheduler
            versions[sample["apiVersion"], sample["kind"]].spec_of(sample)
