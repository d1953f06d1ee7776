"""Request info: the attributes of a request that RBAC checks: verb, group, resource, subresource, namespace and name.

    request_info("GET", "/apis/apps/v1/namespaces/shop/deployments", {"watch": "true"}).verb == "watch"

The rules are those by which the API server reads a request. An apply or update that creates its object also needs
`create`, which the server finds out later (`recorder`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

VERBS: Final = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
# Old URLs that name their verb: /api/v1/watch/pods.
VERBS_IN_PATHS: Final = ("watch", "proxy")
# Subresources of a Namespace; anything else after its name is a resource inside it.
OF_NAMESPACES: Final = ("status", "finalize")
# Spellings of false in a query; everything else is true.
NO: Final = ("0", "false")


class RequestInfo(NamedTuple):
    """The attributes of one request, as RBAC sees them; missing attributes are empty."""

    verb: str
    """`get`, `list`, `watch` and the others; of a non-resource URL the method in lower case."""

    group: str = ""
    """Empty for the core group."""

    resource: str = ""
    """The plural; empty for a non-resource URL."""

    subresource: str = ""
    namespace: str = ""
    """Empty for cluster-scoped resources and for requests across all namespaces. A Namespace is in itself."""

    name: str = ""
    """From the path, or from a list's or watch's field selector for `metadata.name`."""

    url: str = ""
    """The path, if it is a non-resource URL such as `/version`."""


def request_info(method: str, path: str, query: Mapping[str, str]) -> RequestInfo:
    """The attributes of a request; `path` is percent-encoded as in a URL, `query` holds decoded values."""
    path = unquote(path)
    parts = path.strip("/").split("/")
    # /api/v1/<resource> and /apis/<group>/<version>/<resource>: shorter paths name no resource.
    before = {"api": 2, "apis": 3}.get(parts[0])
    if before is None or len(parts) <= before:
        return RequestInfo(method.lower(), url=path)
    group = parts[1] if before == 3 else ""
    verb, parts = VERBS.get(method, ""), parts[before:]
    if parts[0] in VERBS_IN_PATHS and len(parts) > 1:
        verb, parts = parts[0], parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in OF_NAMESPACES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    if verb == "proxy":
        subresource = ""
    if not name and verb == "get":
        verb = "watch" if query.get("watch", "0").lower() not in NO else "list"
        name = _selected(query.get("fieldSelector", ""))
    elif not name and verb == "delete":
        verb = "deletecollection"
    return RequestInfo(verb, group, resource, subresource, namespace, name)


def _selected(fields: str) -> str:
    """The one name that a field selector leaves, if it can be a name at all."""
    for term in fields.split(","):
        key, _, name = term.partition("=")
        if key == "metadata.name":
            name = name.removeprefix("=")
            return "" if name in {".", ".."} or set(name) & {"/", "%"} else name
    return ""
