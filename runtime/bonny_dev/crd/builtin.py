"""Built-in: schemas of types that Kubernetes itself defines, such as a pod template.

You need it to see the schema of `BuiltIn("v1", "PodTemplateSpec")`.

The table, `builtin_schemas.json`, was generated from an API server's own OpenAPI document. It holds the types that
custom resources usually embed, with everything inside them: pod templates, the specs of workloads, services, ingresses,
network policies and autoscalers, volume claims, selectors, rules of RBAC.
Other types can be kept whole and unchecked with `PreserveUnknown`.
"""

from __future__ import annotations

import json
from copy import deepcopy
from difflib import get_close_matches
from functools import cache

from bonny.api.stored import expanded
from bonny.errors import OptionError
from bonny.resource import Resource

from ..wheel import sources

# In the extra `webhooks`, whose conversions need it, too; a repository may lack that.
TABLE = "webhooks/builtin_schemas.json"


def builtin_schema(api_version: str, name: str) -> Resource:
    """The structural schema of `name` in `api_version` (`v1` for the core group, `meta/v1` for the shared types).

    Raises: `OptionError` with the types that the table has.
    """
    types = table().get(api_version, {})
    if name not in types:
        names = {f"{version} {one}" for version in table() if version for one in table()[version]}
        close = get_close_matches(f"{api_version} {name}", sorted(names), n=3)
        meant = f"did you mean {' or '.join(close)}? " if close else ""
        has = ", ".join(sorted(types)) if types else f"types of {', '.join(sorted(filter(None, table())))}"
        raise OptionError(f"the table of built-in types has no {name} of {api_version}: {meant}It has {has}")
    schema: Resource = deepcopy(expanded(types[name], table()))
    return schema


@cache
def table() -> dict[str, dict[str, Resource]]:
    """The types by API version and name. A text stands for the type of that name; without an API version, for a schema
    that many fields have."""
    types: dict[str, dict[str, Resource]] = json.loads(sources()[TABLE])
    return types
