"""OpenAPI: JSON schemas of the kinds that an API server serves, for tools that cannot ask it themselves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bonny.resource import Resource
from tests.support.administrator import Administrator

__all__ = ["write_schemas"]


def write_schemas(server: Administrator, objects: Iterable[Resource], folder: Path) -> None:
    """A file `<kind>-<group>-<version>.json` in `folder` for the kind of each object, closed to unknown fields."""
    for api_version, kind in sorted({(each["apiVersion"], each["kind"]) for each in objects}):
        root = "apis" if "/" in api_version else "api"
        document = server.request("GET", f"/openapi/v3/{root}/{api_version}").body
        group, _, version = api_version.rpartition("/")
        wanted = {"group": group, "version": version, "kind": kind}
        schemas = document["components"]["schemas"]
        (name,) = [
            name for name, schema in schemas.items() if wanted in schema.get("x-kubernetes-group-version-kind", [])
        ]
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": _closed(schemas)}}
        # kubeconform knows a group by its first label.
        names = filter(None, (kind.lower(), group.partition(".")[0], version))
        (folder / f"{'-'.join(names)}.json").write_text(json.dumps(schema), encoding="utf-8")


def _closed(node: Any) -> Any:
    """`node` with every object that lists its fields closed to others, as the API server is when it is strict."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _closed(value) for key, value in node.items()}
    return {"additionalProperties": False, **inner} if isinstance(node.get("properties"), dict) else inner
