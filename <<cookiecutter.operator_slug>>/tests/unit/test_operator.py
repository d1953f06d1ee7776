"""The operator as a whole, without a server: its manifest and its samples."""

from pathlib import Path
from typing import Any

from bonny_dev import testing
from bonny_dev.manifest import bundle

from << cookiecutter.__package >>.operator import operator

SAMPLES = Path(__file__).parents[2] / "samples"
DOCUMENTS = bundle.documents(operator, image="registry.example.com/operator:test", namespace="test", local=False)


def test_the_manifest_grants_no_permission_by_wildcard() -> None:
    rules: list[dict[str, Any]] = [rule for document in DOCUMENTS for rule in document.get("rules", [])]

    assert [rule for rule in rules for names in rule.values() if "*" in names] == []


def test_every_sample_fits_its_version_and_no_field_is_unknown() -> None:
    testing.check_samples(operator, SAMPLES)
