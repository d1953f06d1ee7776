"""Built-in: schemas of types that Kubernetes itself defines, such as a pod template.

You need it to see what `BuiltIn("v1", "PodTemplateSpec")` puts into a definition.

The table, `builtin_schemas.json`, is made by `tools/builtin_schemas.py` from an API server's own OpenAPI document. It
holds what custom resources usually embed, and everything inside of that: pod templates, jobs, services, volume claims,
selectors. A type that is not in it can be kept whole and unchecked with `PreserveUnknown`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import OptionError
from ..resource import Resource

__all__ = ["builtin_schema"]


def builtin_schema(api_version: str, name: str) -> Resource:
    """The structural schema of `name` in `api_version` (`v1` for the core group, `meta/v1` for what all groups share).

    Raises: `OptionError` naming what the table has.
    """
    known = _table().get(api_version, {})
    if name not in known:
        has = ", ".join(sorted(known)) if known else f"nothing of {api_version}, but {', '.join(sorted(_table()))}"
        raise OptionError(f"the table of built-in types has no {name} of {api_version}: it has {has}")
    schema: Resource = _expanded(known[name])
    return schema


def _expanded(node: Any) -> Any:
    """A copy with the other definitions in the place of references to them."""
    if isinstance(node, list):
        return [_expanded(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        api_version, _, name = node["$ref"].rpartition("/")
        return {**builtin_schema(api_version, name), **{key: node[key] for key in node if key != "$ref"}}
    return {key: _expanded(value) for key, value in node.items()}


@cache
def _table() -> dict[str, dict[str, Resource]]:
    text = files(__package__).joinpath("builtin_schemas.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Resource]] = json.loads(text)
    return table
