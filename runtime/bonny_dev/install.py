"""Install: reads YAML documents, finds their kinds, and applies them to a cluster.

You need it wherever objects are applied that were not made by a handler: manifests, CRDs, samples.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from operator import itemgetter
from typing import Any, Final

import yaml

from bonny.client.api import Client
from bonny.client.config import Cluster, Kubeconfig, contexts_of, find_cluster
from bonny.client.errors import NotFound
from bonny.client.pages import pages
from bonny.client.request import ApiRequest, path_of
from bonny.errors import UsageError
from bonny.kinds import Kind, Scope, builtin, builtin_kinds
from bonny.naming import plural_of
from bonny.operator import Operator
from bonny.resource import Resource
from bonny.run.config import Config

CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# A new kind is served within a second; the rest is for a loaded machine.
SERVED_SECONDS: Final = 30.0
# A CRD that is deleted goes with its objects, within seconds unless one of them has a finalizer.
GONE_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.05


def kinds_of(operator: Operator) -> list[Kind]:
    """The kinds that the operator defines or handles."""
    handled = [kind for controller in operator.controllers for kind in controller.kinds(operator.group)]
    return handled + [version.as_kind(operator.group) for version in operator.crds]


def chosen_cluster(config: Config, context: str) -> Cluster:
    """The cluster of a flag, or else of the settings, with the name of its context. Raises: `UsageError`."""
    cluster = find_cluster(kubeconfig=config.kubeconfig, context=context or config.context)
    return with_context(cluster) if isinstance(cluster, Kubeconfig) else cluster


def with_context(cluster: Kubeconfig) -> Kubeconfig:
    """The same, with the name of its current context; unchanged if its files name none, or cannot be read."""
    return replace(cluster, context=cluster.context or contexts_of(cluster.files)[1])


async def described(client: Client) -> str:
    """The address of a cluster and where it was found, for a person who may mean another one. Raises: `UsageError`."""
    return f"{(await client.connection()).server}, {client.cluster.source}"


def is_served(operator: Operator, document: Resource) -> bool:
    """Whether clients can use the API version of a document: not if its version class has `served = False`."""
    hidden = [version.as_kind(operator.group) for version in operator.crds if not version.served]
    return all((each.api_version, each.kind) != (document["apiVersion"], document["kind"]) for each in hidden)


def kind_of(document: Resource, kinds: Iterable[Kind] = ()) -> Kind:
    """The kind of a document: one of `kinds`, or one of Kubernetes; of any other the plural is the regular one."""
    api_version, kind = document["apiVersion"], document["kind"]
    for each in kinds:
        if (each.api_version, each.kind) == (api_version, kind):
            return each
    if builtin(api_version, kind):
        return Kind(api_version, kind)
    scope = Scope.NAMESPACED if "namespace" in document["metadata"] else Scope.CLUSTER
    return Kind(api_version, kind, plural=plural_of(kind), scope=scope)


def misspelt(document: Resource, operator: Operator) -> str:
    """A sentence about a kind that neither `operator` nor Kubernetes has; empty if another operator may have it."""
    api_version, kind = document["apiVersion"], document["kind"]
    kinds = [*kinds_of(operator), *(kind for each in operator.controllers for kind in (*each.owns, *each.related))]
    own = {f"{each.kind} of {each.api_version}": each.group for each in kinds if not builtin(*each.gvk)}
    known = own | {f"{name} of {version}": version.rpartition("/")[0] for version, name in builtin_kinds()}
    wanted, group = f"{kind} of {api_version}", api_version.rpartition("/")[0]
    if wanted in known or not get_close_matches(group, known.values(), n=1, cutoff=0.9):
        return ""
    close = get_close_matches(wanted, known, n=1, cutoff=0.8)
    meant = f", did you mean {close[0]}?" if close else ":"
    return f"there is no {wanted}{meant} The operator has {', '.join(sorted(own)) or 'no kinds'}"


def served_kind(crd: Resource) -> Kind:
    """The kind that a CRD defines, in a version that is served: the stored one if possible. Raises: `UsageError`."""
    spec, names = crd["spec"], crd["spec"]["names"]
    served = [version for version in spec["versions"] if version["served"]]
    if not served:
        raise UsageError(
            f"the cluster serves no version of {crd['metadata']['name']}, so its objects can neither be counted nor "
            "clean up: set served to true for one of them"
        )
    version = max(served, key=itemgetter("storage"))["name"]
    return Kind(f"{spec['group']}/{version}", names["kind"], plural=names["plural"], scope=Scope(spec["scope"]))


async def read_each_version(client: Client, crd: Resource) -> None:
    """List some objects of a kind in each served version. Raises: `ApiError` when their conversion fails."""
    kind = replace(served_kind(crd), metadata_only=True)
    for version in crd["spec"]["versions"]:
        if version["served"]:
            await anext(pages(client, replace(kind, api_version=f"{kind.group}/{version['name']}")))


class _Loader(yaml.SafeLoader):
    """YAML as the API server reads it, without types that JSON does not have: a time is a text, and so is `=`."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(name: str, text: str | bytes) -> list[Any]:
    """The documents in a YAML file called `name` that are not empty. Raises: `UsageError` when it is not YAML."""
    try:
        return [document for document in yaml.load_all(text, _Loader) if document is not None]
    except RecursionError:
        raise UsageError(f"{name} is nested too deep to be read: no object of Kubernetes is, so correct it") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise UsageError(f"{name} is not valid YAML{line} ({getattr(error, 'problem', error)}): correct it") from None


def read_documents(name: str, text: str | bytes) -> list[Any]:
    """The objects in a YAML file called `name`. Raises: `UsageError` when it is not YAML, or holds something else."""
    documents = read_yaml(name, text)
    if not all(map(is_object, documents)):
        raise UsageError(f"{name} holds something that is not an object: give it apiVersion, kind and metadata.name")
    return documents


def is_object(document: object) -> bool:
    """Whether it has the fields of every object of Kubernetes."""
    match document:
        case {"apiVersion": str(), "kind": str(), "metadata": {"name": str()}}:
            return True
    return False


async def install(
    client: Client,
    documents: Sequence[Resource],
    *,
    manager: str,
    kinds: Iterable[Kind] = (),
    applied: Callable[[Resource, bool], None] = lambda *_: None,
) -> None:
    """Apply `documents` in their order, as `kubectl apply --server-side --force-conflicts` does, and wait until the
    kinds that they define are served.

    `applied` is called with each stored object, and whether it was created. An install waits for the end of a CRD that
    is being deleted, and creates it again: changes of it would be lost with it.
    Raises: `ApiError` when the cluster refuses one or does not answer; those before it stay applied. `UsageError`.
    """
    for document in documents:
        stored, created = await client.apply(kind_of(document, kinds), document, manager=manager)
        if document["kind"] == CRD.kind and "deletionTimestamp" in stored["metadata"]:
            await _gone(client, document)
            stored, created = await client.apply(CRD, document, manager=manager)
        applied(stored, created)
    for crd in (document for document in documents if document["kind"] == CRD.kind):
        await _served(client, crd)


async def _gone(client: Client, crd: Resource) -> None:
    name = crd["metadata"]["name"]
    try:
        async with asyncio.timeout(GONE_SECONDS):
            with suppress(NotFound):
                while "deletionTimestamp" in (await client.get(CRD, name))["metadata"]:  # noqa: ASYNC110  not an event
                    await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise UsageError(
            f"the CRD {name} is being deleted, and its objects are not gone after {GONE_SECONDS:.0f} s: "
            f"`kubectl describe crd {name}` has the reason; install again when it is gone"
        ) from None


async def _served(client: Client, crd: Resource) -> None:
    request = ApiRequest("GET", path_of(served_kind(crd)), {"limit": "1"})
    try:
        async with asyncio.timeout(SERVED_SECONDS):
            while (await client.exchange(request)).status == 404:  # noqa: ASYNC110  not an event
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        name = crd["metadata"]["name"]
        raise UsageError(
            f"the CRD {name} is not served after {SERVED_SECONDS:.0f} s: see `kubectl describe crd {name}`"
        ) from None
