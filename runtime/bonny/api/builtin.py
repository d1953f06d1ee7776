"""Built-in: schemas of types that Kubernetes itself defines, such as a pod template.

You need it to see the schema of `BuiltIn("v1", "PodTemplateSpec")`.

The table, `builtin_schemas.json`, was generated from an API server's own OpenAPI document. It holds the types that
custom resources usually embed, with everything inside them: pod templates, the specs of workloads, services, ingresses,
network policies and autoscalers, volume claims, selectors, rules of RBAC.
Other types can be kept whole and unchecked with `PreserveUnknown`.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import OptionError
from ..resource import Resource


def builtin_schema(api_version: str, name: str) -> Resource:
    """The structural schema of `name` in `api_version` (`v1` for the core group, `meta/v1` for the shared types).

    Raises: `OptionError` with the types that the table has.
    """
    types = table().get(api_version, {})
    if name not in types:
        names = {f"{version} {one}" for version in table() for one in table()[version]}
        close = get_close_matches(f"{api_version} {name}", sorted(names), n=3)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        has = ", ".join(sorted(types)) if types else f"types of {', '.join(sorted(table()))}"
        raise OptionError(f"the table of built-in types has no {name} of {api_version}: {meant}It has {has}")
    schema: Resource = _expanded(types[name])
    return schema


def _expanded(node: Any) -> Any:
    """A copy in which each reference is replaced by its definition."""
    if isinstance(node, list):
        return [_expanded(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        api_version, _, name = node["$ref"].rpartition("/")
        return {**builtin_schema(api_version, name), **{key: node[key] for key in node if key != "$ref"}}
    return {key: _expanded(value) for key, value in node.items()}


@cache
def table() -> dict[str, dict[str, Resource]]:
    """The types by API version and name, with references."""
    text = files(__package__).joinpath("builtin_schemas.json").read_text(encoding="utf-8")
    types: dict[str, dict[str, Resource]] = json.loads(text)
    return types
