"""Recorder: compares the permissions that an operator uses with the permissions that its manifest grants.

    with record_permissions() as recorder:
        ...                                     # run the operator, or use a client
    print(recorder.compared_with_manifest(operator))

You need it in tests (it is in `bonny_dev.testing`); `invoke run-local` prints the comparison when it ends.
It sees every request of every client in this process (`bonny.telemetry`). While there is no recorder, this costs one
look into a dictionary.

Does not: see what the API server asks about on its own, such as `update` of `<plural>/finalizers` for a blocking owner
reference, or verbs like `bind` and `escalate`; these are never reported as unused. Permissions that
every user has are not reported as missing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from bonny.operator import Operator
from bonny.resource import Resource
from bonny.telemetry import attach, detach

from .rbac import CLUSTER, READ, VERBS, Permission, as_rules, grants, permissions
from .request_info import request_info

NOT_RECORDED: Final = "not the operator"
"""Name of a thread whose requests are another's, such as the administrator's."""

ANSWERED: Final = "bonny.client.request.answered"
CREATED: Final = "201"
# Every user has them: the ClusterRoles system:basic-user, system:discovery and system:public-info-viewer.
ASKING_ABOUT_ONESELF: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
OPEN_URLS: Final = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Permissions that are used and not granted, and the reverse; `str()` makes it readable."""

    missing: Mapping[str, list[Resource]]
    """Used but not granted: policy rules by namespace (empty: cluster-wide), as entries for `rules` of a controller."""

    unused: Mapping[str, list[Resource]]
    """Granted but never used, in the same form. Get, list and watch of a resource count as one where all are granted:
    the runtime chooses among them."""

    def __str__(self) -> str:
        # The rules to add stand last, next to the prompt: a short run leaves much unused.
        parts = {
            "granted but never used this time": self.unused,
            "used but not granted; add to `rules` of the controller that needs them": self.missing,
        }
        texts = [
            f"permissions {title}:\n" + "".join(f"  {line}\n" for line in rule_lines(rules))
            for title, rules in parts.items()
            if rules
        ]
        return "".join(texts) or "permissions: used and granted are the same\n"


class PermissionRecorder:
    """Notes the permission that each request needs; `record_permissions` makes one that listens."""

    def __init__(self) -> None:
        self.used: set[Permission] = set()
        """Each with the name of the object, where the request has one."""

    # --- recording ---

    def saw(self, method: str, path: str, query: Mapping[str, str], status: int | str | None) -> None:
        """Note one request: its percent-encoded path, its decoded query, and how it was answered, if it was.

        An apply or update that created its object (201) needed `create`, too.
        """
        info = request_info(method, path, query)
        if info.url:
            if not any(info.url == url or info.url.startswith(f"{url}/") for url in OPEN_URLS):
                self.used.add(Permission(CLUSTER, "", info.url, (), info.verb))
            return
        if (info.group, info.resource) in ASKING_ABOUT_ONESELF:
            return
        verbs = (info.verb, "create") if info.verb in {"patch", "update"} and str(status) == CREATED else (info.verb,)
        resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        names = (info.name,) if info.name else ()
        # A Namespace counts as inside of itself, but no Role in there could grant that it is listed or created.
        place = CLUSTER if (info.group, info.resource) == ("", "namespaces") else info.namespace
        self.used.update(Permission(place, info.group, resource, names, verb) for verb in verbs)

    # --- comparing ---

    def compared_with_manifest(self, operator: Operator, *, namespace: str = "") -> Comparison:
        """Compare with the permissions in the manifest of `operator` for `namespace` (default: its own name)."""
        return self.compared_with(grants(operator, namespace=namespace or operator.name))

    def compared_with(self, rules: Mapping[str, Iterable[Resource]]) -> Comparison:
        """Compare with policy rules by namespace, such as `bonny_dev.manifest.rbac.grants` returns."""
        granted, used = set(permissions(rules)), set(self.used)
        missing = {asked._replace(names=()) for asked in used if not any(covers(grant, asked) for grant in granted)}
        unused = {grant for grant in granted if _observable(grant) and not any(covers(grant, asked) for asked in used)}
        unused -= {grant for grant in unused if _reads_otherwise(grant, granted, unused)}
        return Comparison(as_rules(missing), as_rules(unused))


@contextmanager
def record_permissions() -> Iterator[PermissionRecorder]:
    """Record the requests of all clients in this process until the block ends, except for threads `NOT_RECORDED`."""
    recorder = PermissionRecorder()
    listener = f"{__name__}.{id(recorder)}"

    def hear(_name: str, _measurements: Mapping[str, float], asked: Mapping[str, Any], _config: object) -> None:
        if threading.current_thread().name != NOT_RECORDED:
            recorder.saw(asked["method"], asked["path"], asked["query"], asked["status"])

    attach(listener, ANSWERED, hear)
    try:
        yield recorder
    finally:
        detach(listener)


def covers(granted: Permission, asked: Permission) -> bool:
    """As RBAC decides: a permission for named objects does not cover a request that names none."""
    return (
        granted[1:3] == asked[1:3]
        and granted.verb == asked.verb
        and granted.namespace in {CLUSTER, asked.namespace}
        and (not granted.names or (bool(asked.names) and asked.names[0] in granted.names))
    )


def _observable(granted: Permission) -> bool:
    """Whether a request can be seen to need it."""
    of_a_url = granted.resource.startswith("/")
    return of_a_url or (granted.verb in VERBS and not granted.resource.endswith("/finalizers"))


def _reads_otherwise(permission: Permission, granted: set[Permission], unused: set[Permission]) -> bool:
    """Whether it is get, list or watch, if all three are granted and one was used."""
    reads = {permission._replace(verb=verb) for verb in READ}
    return permission in reads and reads <= granted and not reads <= unused


def rule_lines(rules: Mapping[str, list[Resource]]) -> Iterator[str]:
    """Each rule once, as Python and YAML both read it, with the places after it."""
    places: dict[str, list[str]] = {}
    for place, of_place in rules.items():
        for rule in of_place:
            places.setdefault(json.dumps(rule), []).append(place)
    for text, its_places in places.items():
        namespaces = [place for place in its_places if place != CLUSTER]
        yield f"{text}  # in {', '.join(namespaces)}" if namespaces else text
