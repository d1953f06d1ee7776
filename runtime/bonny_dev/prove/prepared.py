"""Prepared: an operator's definitions and permissions in the sandbox, before any life of it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource, listed

from ..install import kind_of, kinds_of
from ..manifest import bundle
from ..project import Project
from ..sandbox import Sandbox
from .life import Setup
from .variants import Sample

TOKEN_SECONDS: Final = 24 * 3600
# Controllers of Kubernetes remove their finalizers, and those do not run in a sandbox.
ENDLESS: Final = frozenset({("v1", "Namespace"), ("v1", "PersistentVolume"), ("v1", "PersistentVolumeClaim")})


def refuse_endless(operator: Operator) -> None:
    """Raises: `UsageError` for an operator of objects whose deletion has no end."""
    if endless := {kind.kind for each in operator.controllers for kind in each.owns if kind.gvk in ENDLESS}:
        raise UsageError(
            f"the operator owns {listed(sorted(endless))}: nothing in a sandbox ends the deletion of such an object, "
            "so lives could not be compared"
        )


def externals_of(root: Path) -> tuple[str, ...]:
    """The environment variables for the address of the external service. Raises: `UsageError`."""
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["bonny"].get("prove", {})
    names = table.get("external", ())
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise UsageError("external in [tool.bonny.prove] of pyproject.toml is a list of names of environment variables")
    return tuple(names)


def prepared(
    project: Project,
    operator: Operator,
    sandbox: Sandbox,
    samples: Sequence[Sample],
    *,
    externals: tuple[str, ...],
    seed: int,
) -> tuple[Setup, list[Resource]]:
    """The setup, and the operator's definitions and permissions, without its Deployment and webhooks, to be applied."""
    converted = {hub.kind for hub in operator.converted}
    documents = bundle.documents(operator, image=None, namespace=operator.name, local=True)
    kept = [each for each in documents if each.get("spec", {}).get("names", {}).get("kind") not in converted]
    sandbox.apply([each for each in kept if each["kind"] in ("Namespace", "ServiceAccount")])
    token = sandbox.service_account_token(operator.name, operator.name, expires_seconds=TOKEN_SECONDS)
    kinds = [*kinds_of(operator), *(kind for each in operator.controllers for kind in each.owns)]
    subjects = [kind_of(each, kinds) for sample in samples for each in sample.subjects]
    narrow = not operator.namespaced and all(kind.namespaced for kind in (*kinds, *subjects))
    setup = Setup(
        operator=operator,
        package=project.package,
        root=project.root,
        sandbox=sandbox,
        token=token,
        externals=externals,
        wide=not narrow,
        seed=seed,
    )
    return setup, kept
