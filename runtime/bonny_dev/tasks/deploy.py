"""Deploy: installs the operator in a cluster, and uninstalls it in the order that leaves nothing behind.

Webhooks are registered last, when a replica answers them. They and admission policies go first, since one may forbid
deletions, and a webhook may not answer; then custom resources, while the operator runs their finalizers; then
the operator; then its CRDs, with which the API server would delete what is left; its namespace last. The cluster itself
is asked for custom resources: it may serve other versions than the code declares.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from bonny.client.api import Client
from bonny.client.config import Cluster
from bonny.client.errors import Forbidden, Invalid, NotFound, NotServed, ServerError, shows_values
from bonny.errors import ApiError, UsageError
from bonny.kinds import Kind, builtin
from bonny.resource import Resource, identify, key_of
from bonny.run.config import Config
from bonny.telemetry.logging import configure

from ..console_log import console
from ..converter import CONFIGURATIONS, check_converter, converter, stop_converting
from ..install import CRD, chosen_cluster, described, kind_of, served_kind
from ..install import install as apply_all
from ..manifest import bundle, policies
from ..project import Project

# A person reads along; finalizers talk to other systems, which takes seconds.
POLL_SECONDS: Final = 0.5
OWN_LABELS: Final = tuple(f"app.kubernetes.io/{name}" for name in ("name", "component", "managed-by"))


def documents_of(project: Project, *, image: str, namespace: str) -> list[Resource]:
    """The objects that `invoke manifest` writes. Raises: `UsageError`."""
    return bundle.documents(project.load_operator(), image=image or project.tagged_image, namespace=namespace or None)


def cluster_of(context: str) -> Cluster:
    """The cluster that run-local and doctor would talk to, too. Raises: `UsageError` when there is none.

    Warnings of its API server are shown with their text.
    """
    if not logging.root.handlers:
        configure(console, level=logging.WARNING)
    return chosen_cluster(Config.from_environment(), context)


async def install(cluster: Cluster, documents: Sequence[Resource], *, wait: float = 300) -> None:
    """Apply the documents of a manifest in their order and print each one, after the cluster.

    A namespace that exists already gets the labels of the manifest, which enforce pod security.
    Webhooks are registered when a replica of this version is ready, which may take `wait` seconds (default 300), and
    work at the end: in the same time they have got the authority that the API server trusts.
    Raises: `ApiError` when the cluster does not answer or refuses one; those before it stay applied. `UsageError`, and
    nothing is applied, when another installation converts the objects of a kind.
    """
    shows_values.set(True)  # the person who reads this wrote the documents
    configurations = [each for each in documents if each["kind"] in CONFIGURATIONS]

    def applied(resource: Resource, created: bool) -> None:
        print(f"{'created' if created else 'applied'} {identify(resource)}", flush=True)

    async with Client(cluster, user_agent="bonny-install") as client:
        print(f"installing into {await described(client)}", flush=True)
        others = [each for each in documents if each not in configurations]
        for each in others:
            if each["kind"] == CRD.kind:
                await check_converter(client, each)
        await _drop_authorities(client, others)
        await apply_all(client, others, manager="bonny-install", applied=applied)
        await _unregister(client, others, configurations)
        deployments = [each for each in others if each["kind"] == "Deployment"]
        for deployment in deployments if configurations else ():
            name = deployment["metadata"]["name"]
            print(f"waiting for a ready replica of {name}, which answers its webhooks", flush=True)
            advice = f"`kubectl describe deployment {name}` has the reason; the next install registers its webhooks"
            await _until(client, deployment, _is_rolled_out, f"has no ready replica: {advice}", wait=wait)
        await apply_all(client, configurations, manager="bonny-install", applied=applied)
        for configuration in configurations:
            problem = "has no caBundle, so no write of its kinds is allowed: see the operator's log"
            await _until(client, configuration, _is_trusted, problem, wait=wait)


async def _drop_authorities(client: Client, documents: Sequence[Resource]) -> None:
    """Remove the caBundle of CRDs whose conversion ends with these documents.

    The operator owns that field, so an apply would leave it there alone, and the API server refuses such a CRD.
    """
    patch = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": None}}}}}
    for each in documents:
        if each["kind"] == CRD.kind and "webhook" not in each["spec"].get("conversion", {}):
            with suppress(NotFound, Forbidden):  # the apply says what is missing
                live = await client.get(CRD, key_of(each))
                if live["spec"].get("conversion", {}).get("strategy") == "Webhook":
                    await client.merge_patch(CRD, key_of(each), patch)


async def _unregister(client: Client, others: Sequence[Resource], configurations: Sequence[Resource]) -> None:
    """Delete the webhook configurations that only a former release had: no replica will answer them.

    Other installations have labels like these, and Services in other namespaces.
    """
    kept = [(each["kind"], each["metadata"]["name"]) for each in configurations]
    for each in others:
        marks = each["metadata"].get("labels", {})
        for kind in CONFIGURATIONS if each["kind"] == "Deployment" and marks.keys() >= {*OWN_LABELS} else ():
            ours = ",".join(f"{name}={marks[name]}" for name in OWN_LABELS)
            for live in await client.list(Kind(policies.API_VERSION, kind, label_selector=ours)):
                services = [webhook["clientConfig"].get("service", {}) for webhook in live.get("webhooks", ())]
                own = any(service.get("namespace") == each["metadata"]["namespace"] for service in services)
                if own and (kind, live["metadata"]["name"]) not in kept:
                    await _delete(client, Kind(policies.API_VERSION, kind), live)


async def _until(
    client: Client, like: Resource, holds: Callable[[Resource], bool], problem: str, *, wait: float
) -> None:
    ends = asyncio.get_running_loop().time() + wait
    while not holds(await client.get(kind_of(like), key_of(like))):
        if asyncio.get_running_loop().time() > ends:
            raise UsageError(f"after {wait:g} s {identify(like)} {problem}")
        await asyncio.sleep(POLL_SECONDS)


def _is_rolled_out(deployment: Resource) -> bool:
    """Whether a replica is ready, and none is of a former template."""
    status = deployment.get("status", {})
    return (
        status.get("observedGeneration") == deployment["metadata"]["generation"]
        and status.get("updatedReplicas") == status.get("replicas")
        and bool(status.get("readyReplicas"))
    )


def _is_trusted(configuration: Resource) -> bool:
    return all(webhook["clientConfig"].get("caBundle") for webhook in configuration["webhooks"])


async def uninstall(
    cluster: Cluster, documents: Sequence[Resource], *, own: str, wait: float, sure: bool, namespace: str = ""
) -> None:
    """Delete all custom resources, wait `wait` seconds at most until they are gone, then the documents in reverse.

    Guarantees: without `sure` nothing is deleted; while a custom resource is left, only policies and webhooks are. No
    webhook is called, also where no replica answers. Of Namespaces only the one called `own`, which is the operator's
    name, is deleted: others may hold what is not the operator's. With the `namespace` of an operator that watches no
    other one: while it is installed elsewhere, too, CRDs, their roles and the custom resources elsewhere are left.
    Raises: `UsageError` that says what would be deleted, what is left after the wait, or that objects are stored in
    several versions, between which only the operator can convert; `ApiError`.
    """
    defined = [document["metadata"]["name"] for document in documents if document["kind"] == CRD.kind]
    namespaces = {document["metadata"]["name"] for document in documents if document["kind"] == "Namespace"}
    documents = [each for each in documents if each["kind"] != "Namespace" or each["metadata"]["name"] == own]
    async with Client(cluster, user_agent="bonny-uninstall") as client:
        elsewhere = await _elsewhere(client, own, namespace)
        shared = [each for each in documents if elsewhere and _is_shared(each, namespace)]
        documents = [each for each in documents if each not in shared]
        within = namespace if elsewhere else None
        unconverted = [
            each["spec"]["names"]["kind"]
            for each in shared
            if each["kind"] == CRD.kind and (await converter(client, each)).get("namespace") == namespace
        ]
        converting = [] if elsewhere else await _converting(client, defined)
        left = await _objects(client, defined, within)
        if not sure:
            places = ", ".join(sorted({each["metadata"].get("namespace", "the cluster") for _, each in left}))
            raise UsageError(
                f"this deletes from {await described(client)}, all custom resources ({len(left)})"
                f"{f' in {places}' if left else ''}, the objects of the manifest ({len(documents)})"
                f"{f' and all else in namespace {own}' if own in namespaces else ''}: add --yes to do it"
            )
        print(f"uninstalling from {await described(client)}", flush=True)
        # The guard holds the operator's permissions to what they are for, so it stays for as long as those do.
        guard = f"{own}-{policies.GUARD}."
        called = [each for each in reversed(documents) if each["apiVersion"] == policies.API_VERSION]
        admission = [each for each in called if not each["metadata"]["name"].startswith(guard)]
        for each in admission:
            await _delete(client, kind_of(each), each)
        for crd in await stop_converting(client, converting):
            print(f"{identify(crd)} no longer uses conversions", flush=True)
        again = (Forbidden, Invalid, ServerError) if admission else ()
        await _delete_custom_resources(client, defined, within, wait=wait, again=again)
        for document in reversed(documents):
            kind = kind_of(document)
            try:
                await _delete(client, kind, document)
            except NotServed:
                # A custom kind may have been removed before. A bare 404 for a kind of Kubernetes itself is an error.
                if builtin(kind.api_version, kind.kind):
                    raise
    for name in sorted(namespaces - {own}):
        print(f"left Namespace {name}, which may hold objects that are not the operator's", flush=True)
    for each in shared:
        print(f"left {identify(each)}, which the operator in {', '.join(elsewhere)} needs", flush=True)
    for kind in unconverted:
        print(f"nothing converts {kind} now: run `invoke install --namespace {elsewhere[0]}`", flush=True)


async def _elsewhere(client: Client, name: str, namespace: str) -> list[str]:
    """The other namespaces in which an operator that watches `namespace` alone is installed, too."""
    if not namespace:
        return []
    ours = f"{OWN_LABELS[0]}={name},{OWN_LABELS[1]}=operator,{OWN_LABELS[2]}=bonny"
    found = await client.list(Kind("apps/v1", "Deployment", label_selector=ours))
    return sorted({each["metadata"]["namespace"] for each in found} - {namespace})


def _is_shared(document: Resource, namespace: str) -> bool:
    """Whether all installations have this object: it is in no namespace, and its name says none.

    A CRD has the name of its group, which may end like a namespace.
    """
    if "namespace" in document["metadata"] or document["kind"] == "Namespace":
        return False
    return document["kind"] == CRD.kind or not document["metadata"]["name"].endswith(f".{namespace}")


async def _delete_custom_resources(
    client: Client, defined: Sequence[str], within: str | None, *, wait: float, again: tuple[type[ApiError], ...]
) -> None:
    """Delete the objects of these kinds, and wait until they are gone.

    Refusals of the classes `again` are tried again: a policy or a webhook stays in force for some seconds after it was
    deleted.
    """
    ends = asyncio.get_running_loop().time() + wait
    left = await _objects(client, defined, within)
    while left:
        refusal: ApiError | None = None
        for kind, resource in left:
            if "deletionTimestamp" not in resource["metadata"]:
                try:
                    await _delete(client, kind, resource)
                except again as error:
                    refusal = error
        await asyncio.sleep(POLL_SECONDS)
        left = await _objects(client, defined, within)
        if left and asyncio.get_running_loop().time() > ends:
            raise refusal or UsageError(
                f"after {wait:g} s there still are custom resources ({len(left)}), {identify(left[0][1])} among "
                "them, so the operator was left in place: its log has the reason of the delay"
            )


async def _converting(client: Client, defined: Sequence[str]) -> list[Resource]:
    """The CRDs that call a webhook. Raises: `UsageError` when one cannot do without, because of its stored objects."""
    found = []
    for name in defined:
        with suppress(NotFound):
            crd = await client.get(CRD, name)
            if crd["spec"].get("conversion", {}).get("strategy") == "Webhook":
                stored = [each["name"] for each in crd["spec"]["versions"] if each["storage"]]
                if crd["status"].get("storedVersions") != stored:
                    kind = crd["spec"]["names"]["kind"]
                    raise UsageError(
                        f"{kind} is stored in {', '.join(crd['status']['storedVersions'])}, so it cannot be read "
                        f"without the operator, and nothing was deleted: run `invoke migrate {kind}` first"
                    )
                found.append(crd)
    return found


async def _objects(client: Client, defined: Sequence[str], within: str | None) -> list[tuple[Kind, Resource]]:
    """All objects of the kinds that these CustomResourceDefinitions define; one that is not installed has none.

    `within` a namespace there are only those in it.
    Only the API server's own "not found" says so. A bare 404 may come from a proxy, and is raised.
    """
    objects: list[tuple[Kind, Resource]] = []
    for name in defined:
        with suppress(NotFound):
            kind = served_kind(await client.get(CRD, name))
            if kind.namespaced or within is None:
                objects += [(kind, each) for each in await client.list(kind, namespace=within)]
    return objects


async def _delete(client: Client, kind: Kind, resource: Resource) -> None:
    with suppress(NotFound):
        await client.delete(kind, key_of(resource))
        print(f"deleted {identify(resource)}", flush=True)
