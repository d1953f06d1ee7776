"""Request info: what a request asks permission for.

Elsewhere: what the API server itself says (tests/integration/test_request_info.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.api import Scope
from bonny.client.request import path_of
from bonny.kinds import Kind
from bonny_dev.manifest.request_info import RequestInfo, request_info

# What names may hold; a namespace called like a subresource of namespaces is one, all the same.
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
PLURALS = NAMES.filter(lambda name: name not in {"namespaces", "watch", "proxy", "status", "finalize"})
# RBAC's own objects may have these in their names.
OBJECTS = NAMES | NAMES.map(lambda name: f"system:{name}")
GROUPS = st.sampled_from(["", "apps", "example.com"])


@given(
    group=GROUPS,
    plural=PLURALS,
    namespace=NAMES | st.none(),
    name=OBJECTS,
    subresource=st.sampled_from(["", "status", "scale", "finalizers"]),
    method=st.sampled_from([("GET", "get"), ("PUT", "update"), ("PATCH", "patch"), ("DELETE", "delete")]),
)
def test_an_object_is_read_from_the_path_that_the_client_makes(
    *, group: str, plural: str, namespace: str | None, name: str, subresource: str, method: tuple[str, str]
) -> None:
    scope = Scope.CLUSTER if namespace is None else Scope.NAMESPACED
    kind = Kind(f"{group}/v1" if group else "v1", "Thing", plural=plural, scope=scope)

    found = request_info(method[0], path_of(kind, namespace, name, subresource), {})

    assert found == RequestInfo(method[1], group, plural, subresource, namespace or "", name)


@given(group=GROUPS, plural=PLURALS, namespace=NAMES | st.none(), selected=OBJECTS | st.none(), watch=st.booleans())
def test_a_collection_is_listed_watched_added_to_and_emptied(
    group: str, plural: str, namespace: str | None, selected: str | None, watch: bool
) -> None:
    kind = Kind(f"{group}/v1" if group else "v1", "Thing", plural=plural, scope=Scope.NAMESPACED)
    path = path_of(kind, namespace)
    about = {"group": group, "resource": plural, "namespace": namespace or ""}
    query = {"watch": "true"} if watch else {"limit": "500"}
    if selected is not None:
        query["fieldSelector"] = f"spec.size=1,metadata.name={selected}"

    assert request_info("GET", path, query) == RequestInfo("watch" if watch else "list", name=selected or "", **about)
    assert request_info("POST", path, {"dryRun": "All"}) == RequestInfo("create", **about)
    # A selection of what is deleted narrows nothing for RBAC.
    assert request_info("DELETE", path, query) == RequestInfo("deletecollection", **about)


@given(path=st.text(st.characters(codec="ascii"), max_size=40), method=st.sampled_from(["GET", "POST", "BREW"]))
def test_every_path_is_either_of_a_resource_or_a_url(path: str, method: str) -> None:
    found = request_info(method, f"/{path}", {})

    assert bool(found.url) != bool(found.resource or path.startswith("api"))


@pytest.mark.parametrize("path", ["/", "/version", "/healthz/etcd", "/api", "/api/v1", "/apis", "/apis/apps/v1"])
def test_what_names_no_resource_is_a_url(path: str) -> None:
    assert request_info("GET", path, {}) == RequestInfo("get", url=path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces", RequestInfo("list", resource="namespaces")),
        ("/api/v1/namespaces/a", RequestInfo("get", resource="namespaces", namespace="a", name="a")),
        ("/api/v1/namespaces/a/status", RequestInfo("get", "", "namespaces", "status", "a", "a")),
        ("/api/v1/namespaces/a/pods", RequestInfo("list", resource="pods", namespace="a")),
        ("/api/v1/namespaces/a/pods/p/proxy/x/y", RequestInfo("get", "", "pods", "proxy", "a", "p")),
        ("/api/v1/watch/namespaces/a/pods/p", RequestInfo("watch", resource="pods", namespace="a", name="p")),
    ],
)
def test_namespaces_are_both_a_place_and_a_resource(path: str, expected: RequestInfo) -> None:
    assert request_info("GET", path, {}) == expected
