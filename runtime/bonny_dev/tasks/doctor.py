"""Doctor: the checks of `invoke doctor`, before an operator is deployed or when it does not work; one line each.

It changes nothing: writes are dry runs, and permissions are asked for by access reviews.
RBAC of the person: get, create and update of customresourcedefinitions, create of subjectaccessreviews, list of the
operator's kinds, of the kinds that they own and, if it selects them by labels, of namespaces; and what it takes to
apply the samples. With sharding: list of leases in the operator's namespace. With webhooks: list of endpointslices and
deployments, and get of the Secret, in the operator's namespace, and get of both webhook configurations. A check that
is forbidden is a finding, too.
"""

from __future__ import annotations

import asyncio
import difflib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from bonny.client.api import JSON, Client
from bonny.client.config import Cluster, Kubeconfig
from bonny.client.errors import (
    MISSING_RULE,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    Throttled,
    Unauthorized,
    log_text_of,
    refusal,
    shows_values,
)
from bonny.client.request import ApiRequest, path_of
from bonny.controller import Controller
from bonny.core.objects import decode_failure
from bonny.errors import ApiError, UsageError
from bonny.naming import check_dns_label
from bonny.operator import Operator
from bonny.resource import Resource, identify

from ..converter import check_converter
from ..install import CRD, described, install, is_served, kind_of, kinds_of, read_documents, read_each_version
from ..manifest import bundle, granting, selected
from ..manifest.rbac import missing_lines
from ..manifest.reviews import refused
from ..sandbox import Sandbox, versions
from ..uses import has_webhooks, namespaces_of
from .deploy import cluster_of
from .orphans import find_orphans
from .provision import sample_files
from .wrong import Wrong

# As kubectl does: a field that the schema does not know is an error.
DRY_RUN: Final = {"dryRun": "All", "fieldManager": "doctor", "fieldValidation": "Strict"}
# A person waits.
SECONDS: Final = 10.0
# An API server learns of roles a moment after they were applied; a look follows each wait but the last.
ROLE_SECONDS: Final = (0.5, 1.5, 0.0)
# The longest difference to print; `kubectl diff` shows the rest.
DIFF_LINES: Final = 20
MANIFEST: Final = "apply the output of `invoke manifest`"
# To the person whose check the API server refuses.
ADVICE: Final[Mapping[type[ApiError], str]] = {
    Unauthorized: "log in again",
    Forbidden: "ask an administrator to run this",
    Invalid: "fix it in the code",
}
GREEN, RED, DIM, PLAIN = "\033[32m", "\033[31m", "\033[2m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    part: str
    """cluster, version, manifest, crd, permissions, children, sharding, webhook, memory or sample."""

    ok: bool
    text: str
    """The good state; or the problem and, after a colon, what to do."""

    detail: tuple[str, ...] = ()
    """More lines, such as a difference."""


def run(operator: Operator, samples: Path, *, sandbox: bool, namespace: str, context: str) -> bool:
    """Run the checks and print their results; returns whether all passed. `samples` is a folder of YAML files.

    Raises: `UsageError` for flags that cannot be, when there is no cluster to ask, or no sandbox to be had.
    """
    where = check_dns_label(namespace or operator.name, "namespace")
    texts = sample_files(samples)
    if sandbox and (context or namespace):
        raise UsageError("--sandbox and --context or --namespace exclude each other: a sandbox is a cluster of its own")
    if not sandbox:
        return asyncio.run(_report(examine(operator, cluster_of(context), namespace=where, samples=texts)))
    print("starting a sandbox ...", flush=True)
    with Sandbox() as started:
        own = Kubeconfig(str(started.kubeconfig))
        started.apply(namespaces_of(operator))
        return asyncio.run(_report(examine(operator, own, namespace=operator.name, samples=texts, installs=True)))


async def _report(findings: AsyncIterator[Finding]) -> bool:
    shows_values.set(True)  # the reader wrote the samples
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")  # https://no-color.org
    green, red, dim, plain = (GREEN, RED, DIM, PLAIN) if colour else ("",) * 4
    checks = wrong = 0
    async for finding in findings:
        checks, wrong = checks + 1, wrong + (not finding.ok)
        mark = f"{green}ok  {plain}" if finding.ok else f"{red}FAIL{plain}"
        print(f"{mark}  {finding.part:<11}  {finding.text}", flush=True)
        for line in finding.detail:
            tint = {"+": green, "-": red}.get(line[:1], dim)
            print(f"{'':19}{tint}{line}{plain}", flush=True)
    print(f"{red}{wrong} of {checks} checks failed{plain}" if wrong else f"{green}all checks passed{plain}", flush=True)
    return not wrong


async def examine(
    operator: Operator, cluster: Cluster, *, namespace: str, samples: Mapping[str, bytes], installs: bool = False
) -> AsyncIterator[Finding]:
    """Everything, in order, up to what the rest depends on. `namespace` is that of the manifest, `samples` are YAML.

    With `installs` the manifest is applied first.
    Raises: `UsageError` when the credentials cannot be read.
    """
    async with Client(cluster, user_agent=operator.user_agent, timeout=SECONDS) as client:
        reached = await _look("cluster", _reached(client))
        yield reached
        if not reached.ok:
            return
        yield await _look("version", _supported(client))
        if installs:
            yield await _look("manifest", _installed(client, operator), wrong=UsageError)
        for crd in bundle.definitions(operator, namespace):
            yield await _look("crd", _crd_as_declared(client, crd), wrong=UsageError)
        # The API server of a sandbox cannot reach a Service, so the manifest for it has no webhooks.
        found = await _look("permissions", _granted(client, operator, namespace, deployed=not installs))
        yield replace(found, detail=(*found.detail, *granting.warnings(operator)))
        for controller in () if installs else granting.controllers(operator):
            yield await _look("permissions", _grants_what_it_has(client, operator, controller))
        if not installs and any(controller.owns for controller in operator.controllers):
            yield await _look("children", _owned(client, operator))
        if getattr(operator, "sharding", None) and not installs:
            from . import doctor_sharding

            yield await _look("sharding", doctor_sharding.shared(client, operator, namespace))
        if has_webhooks(operator) and not installs:
            from . import doctor_webhooks

            yield await _look("webhook", doctor_webhooks.answered(client, operator, namespace))
            yield await _look("webhook", doctor_webhooks.certified(client, operator, namespace))
            yield await _look("memory", doctor_webhooks.roomy(client, operator, namespace))
        for file, text in samples.items():
            yield await _look("sample", _accepted(client, operator, file, text), wrong=UsageError)


async def _look(part: str, check: Awaitable[str], *, wrong: type[UsageError] = Wrong) -> Finding:
    """The finding of a check that fails with an error of the class `wrong`, or because the API server refuses it."""
    try:
        text, *detail = (await check).splitlines()
        return Finding(part, True, text, tuple(detail))
    except wrong as error:
        return Finding(part, False, str(error), getattr(error, "detail", ()))
    except ApiError as error:
        # A rule in CEL is refused with several lines that show it.
        first, *others = log_text_of(error).splitlines()
        return Finding(part, False, f"{first}: {_advice(error)}", tuple(others))


def _advice(error: ApiError) -> str:
    if isinstance(error, ServerError) and "webhook" in log_text_of(error):
        return "see the checks of webhooks"
    return ADVICE.get(type(error), "check that the API server runs and can be reached from here")


async def _reached(client: Client) -> str:
    await _asked(client, "GET", "/version", "read", "the version")
    return await described(client)


async def _supported(client: Client) -> str:
    text = str((await _asked(client, "GET", "/version", "read", "the version")).get("gitVersion"))
    version, oldest, newest = versions.parse(text), versions.OLDEST["kube-apiserver"], versions.KUBERNETES
    supported = f"{oldest.major}.{oldest.minor} to {newest.major}.{newest.minor} are supported"
    if version is None:
        raise Wrong(f"{text!r} is not a version, and {supported}: ask the administrator of the cluster")
    if version[:2] < oldest[:2]:
        raise Wrong(f"Kubernetes {text} is too old, {supported}: upgrade the cluster")
    if version[:2] > newest[:2]:
        raise Wrong(f"Kubernetes {text} is too new, {supported}: `invoke update-runtime`")
    return f"Kubernetes {text}"


async def _installed(client: Client, operator: Operator) -> str:
    documents = bundle.documents(operator, image=None, namespace=operator.name, local=True)
    await install(client, documents, manager="doctor")
    return "is accepted by the sandbox"


async def _crd_as_declared(client: Client, crd: Resource) -> str:
    """Served, the same with the defaults that the API server adds, and readable in each version."""
    name, live = crd["metadata"]["name"], None
    try:
        live = await client.get(CRD, name)
        wanted = {**crd, "metadata": {**crd["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        match live["spec"], wanted["spec"]:
            case {"conversion": {"webhook": {"clientConfig": {"caBundle": authority}}}}, {"conversion": _}:
                # The manifest has none: the operator or cert-manager adds it.
                wanted = msgspec.to_builtins(wanted)
                wanted["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = authority
        stored = await _asked(client, "PUT", path_of(CRD, None, name), "update", name, body=wanted)
        await check_converter(client, crd)
    except NotFound:
        await _asked(client, "POST", path_of(CRD), "create", name, body=crd)
        raise Wrong(f"{name} is not installed: {MANIFEST}") from None
    conditions = {each["type"]: each["status"] for each in (live.get("status") or {}).get("conditions") or ()}
    if conditions.get("Established") != "True":
        raise Wrong(f"{name} is not served: kubectl describe crd {name}")
    if stored["spec"] != live["spec"]:
        before, after = (bundle.to_yaml([each["spec"]]).splitlines() for each in (live, stored))
        lines = [*difflib.unified_diff(before, after, "in the cluster", "in the code", lineterm="", n=2)]
        more = [f"... and {len(lines) - DIFF_LINES} lines more"] if len(lines) > DIFF_LINES else []
        raise Wrong(f"{name} differs from the code: {MANIFEST}", *lines[:DIFF_LINES], *more)
    await _check_versions(client, live)
    return f"{name} is installed as declared in the code"


async def _check_versions(client: Client, live: Resource) -> None:
    """Each served version can be listed, and only the storage version is stored."""
    spec, kind = live["spec"], live["spec"]["names"]["kind"]
    # A kind that was just installed is not served everywhere yet.
    with suppress(NotServed, Throttled):
        await read_each_version(client, live)
    storage = [version["name"] for version in spec["versions"] if version["storage"]]
    stored = live["status"].get("storedVersions", storage)
    if stored != storage:
        raise Wrong(f"{kind} is stored in {', '.join(stored)}, not only in {storage[0]}: `invoke migrate {kind}`")


async def _granted(client: Client, operator: Operator, namespace: str, *, deployed: bool) -> str:
    account = f"ServiceAccount {namespace}/{operator.name}"
    needed = await selected.needed(client, operator, namespace=namespace, deployed=deployed)
    for seconds in ROLE_SECONDS:
        missing = await refused(client, needed, service_account=(namespace, operator.name))
        if not missing:
            break
        await asyncio.sleep(seconds)
    if missing == needed != set():
        raise Wrong(f"{account} has no permissions: {MANIFEST}, or name its namespace by --namespace")
    if missing:
        raise Wrong(
            f"{account} lacks {len(missing)} of {len(needed)} permissions: {MANIFEST}, or", *missing_lines(missing)
        )
    return f"{account} has all {len(needed)} permissions that it needs"


async def _grants_what_it_has(client: Client, operator: Operator, controller: type[Controller[Any]]) -> str:
    """Only the handler knows what a controller grants, so the conditions of its objects are read: each refusal has the
    missing rules. In a kind without conditions, nothing is found."""
    missing: dict[str, str] = {}
    for kind in controller.kinds(operator.group):
        for each in await client.list(kind):
            for condition in (each.get("status") or {}).get("conditions") or ():
                _, _, rules = condition.get("message", "").partition(MISSING_RULE)
                if rules and condition["status"] != "True":
                    missing.setdefault(rules.partition("; ")[0], identify(each))
    if missing:
        lines = [f"{rules}  # for {name}" for rules, name in missing.items()]
        raise Wrong(f"{controller.__name__} may not grant rules that it lacks: add to its `rules`", *lines)
    return f"no object of {controller.__name__} was refused because of a rule that it grants"


async def _owned(client: Client, operator: Operator) -> str:
    if left := await find_orphans(client, operator):
        lines = [f"{each.child}{'' if each.collected else '  # has no owner reference'}" for each in left]
        raise Wrong(f"{len(left)} children have lost their owner: delete the ones that you do not need", *lines)
    return "the owners of all children exist"


async def _accepted(client: Client, operator: Operator, file: str, text: bytes) -> str:
    """A dry run of applying each object in it, to the namespace `default` where it names none."""
    accepted = []
    try:
        for document in read_documents(file, text):
            if not is_served(operator, document):
                continue
            kind = kind_of(document, kinds_of(operator))
            metadata = {**({"namespace": "default"} if kind.namespaced else {}), **document["metadata"]}
            stored, _ = await client.apply(kind, {**document, "metadata": metadata}, manager="doctor", dry_run=True)
            accepted.append(stored)
    except NotServed:
        served = f"{document['kind']} of {document['apiVersion']} is not served"
        raise Wrong(f"{file}: {served}: {MANIFEST}") from None
    except ApiError as error:
        advice = _advice(error) if isinstance(error, ServerError) else "fix it"
        raise Wrong(f"{file}: {log_text_of(error)}: {advice}") from None
    if not accepted:
        return f"{file}: has no object of a served version"
    return f"{file}: {', '.join(map(identify, accepted))} would be accepted"


async def _asked(
    client: Client, method: str, path: str, verb: str, what: str, *, body: Resource | None = None
) -> dict[str, Any]:
    """The decoded answer; what has a body is a dry run. Raises: `ApiError`."""
    content = msgspec.json.encode(body) if body else None
    query, headers = (DRY_RUN, {"Content-Type": JSON}) if body else ({}, {})
    answer = await client.exchange(ApiRequest(method, path, query, headers, content))
    if answer.status >= 300:
        raise refusal(decode_failure(answer.status, answer.body, None), verb=verb, resource=what)
    try:
        return msgspec.json.decode(answer.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Wrong(
            f"{client.cluster.source} does not look like a Kubernetes API server: correct the address"
        ) from None
