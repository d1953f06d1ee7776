"""Samples: whether the objects in `samples/` would be accepted by the API server, without a server."""

from __future__ import annotations

from pathlib import Path

from bonny.errors import InvalidObject
from bonny.operator import Operator

from ..crd import check_object
from ..install import misspelt, read_documents
from .stubs import check_fields


def check_samples(operator: Operator, folder: Path) -> None:
    """Check each object in the YAML files of `folder`: its kind exists, its fields exist and fit.

    Kinds of other operators are not checked; of built-in kinds, limits are not checked.
    Raises: `AssertionError` with a line for each mistake; `UsageError` for a file that is not YAML.
    """
    versions = {version.as_kind(operator.group).gvk: version for version in operator.crds}
    mistakes = []
    for path in sorted(folder.glob("*.y*ml")):
        for sample in read_documents(f"{folder.name}/{path.name}", path.read_bytes()):
            version, problem = versions.get((sample["apiVersion"], sample["kind"])), misspelt(sample, operator)
            try:
                check_fields(sample) if version is None else check_object(version, sample, strict=True)
            except InvalidObject as error:
                problem = str(error)
            mistakes += [f"{folder.name}/{path.name}: {problem}"] if problem else []
    if mistakes:
        raise AssertionError("\n".join(mistakes))
