"""Reading: the CustomResourceDefinition in a file, on standard input or in a cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from bonny.client import Client, NotFound
from bonny.client.config import find_cluster
from bonny.errors import UsageError
from bonny.resource import Resource

from ..crd.definition import without_empty
from ..install import CRD, read_yaml
from .compare import notable
from .definition_checks import NAME, at, checked

_FILE: Final = (".yaml", ".yml", ".json")


def read_crd(source: str, *, kind: str = "") -> tuple[Resource, str]:
    """The definition at `source`, a file, `-` for standard input, or a name in the cluster; and its YAML.

    `kind` chooses one of several in a file; the cluster is that of the kubeconfig's current context.
    Raises: `UsageError` in a sentence when there is none that can be used; `ApiError` when the cluster does not answer.
    """
    path = Path(source)
    if source == "-":
        return parse_crd("the standard input", sys.stdin.read(), kind=kind)
    if path.is_file():
        try:
            return parse_crd(source, path.read_text(encoding="utf-8"), kind=kind)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{source} cannot be read ({error}): name a YAML file with a definition") from error
    if not NAME.fullmatch(source) or source.endswith(_FILE):
        raise UsageError(
            f"there is no file {source}: name one, - for the standard input, or a definition in the cluster, such as "
            "certificates.cert-manager.io"
        )
    found = asyncio.run(_from_cluster(source))
    marks = {key: notable(found["metadata"].get(key)) for key in ("labels", "annotations")}
    metadata = without_empty(name=found["metadata"]["name"], **marks)
    plain = {"apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": metadata, "spec": found["spec"]}
    return checked(source, plain), yaml.safe_dump(plain, sort_keys=False, width=120)


def parse_crd(where: str, text: str, *, kind: str = "") -> tuple[Resource, str]:
    """The definition in the YAML `text`, and its own part of the text. Raises: `UsageError`."""
    items = [item for each in read_yaml(where, text) for item in (_items(each) if isinstance(each, dict) else (each,))]
    found = [item for item in items if isinstance(item, dict) and item.get("kind") == CRD.kind]
    named = [each for each in found if kind in ("", at(each, "spec", "names", "kind"))]
    if not found:
        kinds = ", ".join(sorted({str(item.get("kind")) if isinstance(item, dict) else "no object" for item in items}))
        raise UsageError(f"{where} has no CustomResourceDefinition, but {kinds or 'nothing'}: name a file with one")
    if len(named) != 1:
        kinds = ", ".join(str(at(each, "spec", "names", "kind")) for each in found)
        raise UsageError(f"{where} has the definitions of {kinds}: choose one, such as --kind {kinds.split(',')[0]}")
    crd = checked(where, named[0])
    return crd, text if len(items) == 1 else yaml.safe_dump(crd, sort_keys=False, width=120)


def _items(document: Resource) -> list[Any]:
    return document["items"] if isinstance(document.get("items"), list) else [document]


async def _from_cluster(name: str) -> Resource:
    async with Client(find_cluster(), user_agent="bonny-from-crd") as client:
        try:
            return await client.get(CRD, name)
        except NotFound as error:
            raise UsageError(
                f"the cluster has no definition {name}, and there is no such file: see `kubectl get crds`"
            ) from error
