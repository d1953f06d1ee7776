"""Provision: what run-local puts into a cluster before the operator starts: CRDs, its account, samples.

Everything is applied server-side and forced, so a second run changes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from bonny.client.api import Client
from bonny.client.config import Cluster, Connection
from bonny.client.errors import Forbidden, NotServed, Refusal, Unauthorized, Unreachable
from bonny.errors import ApiError, UsageError
from bonny.kinds import Kind, builtin
from bonny.operator import Operator
from bonny.resource import Resource, identify

from ..crd.definition import crds
from ..manifest import bundle

__all__ = ["CRD", "Account", "apply_samples", "install_account", "install_crds"]

CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
ACCOUNT: Final = Kind("v1", "ServiceAccount")
# A fresh CRD is served within a second; ten are plenty for a slow machine.
ESTABLISHED_SECONDS: Final = 10.0
# What kubelets ask for, renewed like there after four fifths of it.
TOKEN_SECONDS: Final = 3600
RENEWED_AFTER: Final = 0.8


async def install_crds(operator: Operator, cluster: Cluster) -> list[str]:
    """Apply the operator's CRDs and wait until they are served; returns their names.

    Raises: `UsageError` when the API server does not answer, does not know us, or does not permit it.
    """
    wanted = crds(operator.crds, operator.group)
    with _in_words("install CRDs", cluster):
        async with _client(operator, cluster) as client:
            for crd in wanted:
                await client.apply(CRD, crd, manager=_manager(operator))
            await asyncio.gather(*(_established(client, crd) for crd in wanted))
    return [crd["metadata"]["name"] for crd in wanted]


async def install_account(operator: Operator, cluster: Cluster) -> Account:
    """Apply the namespace, the ServiceAccount and the permissions of the manifest; returns the account to run as.

    Objects of kinds that others define, such as monitors, are no part of it; the cluster may not serve them.
    Raises: `UsageError` as `install_crds`.
    """
    documents = bundle.documents(operator, image=None, namespace=operator.name, local=True)
    with _in_words("create the operator's ServiceAccount and its permissions", cluster):
        async with _client(operator, cluster) as client:
            for document in documents:
                named = (document["apiVersion"], document["kind"])
                if builtin(*named) and named != (CRD.api_version, CRD.kind):
                    await client.apply(Kind(*named), document, manager=_manager(operator))
    return Account(admin=cluster, namespace=operator.name, name=operator.name)


async def apply_samples(operator: Operator, cluster: Cluster, folder: Path, *, namespace: str) -> list[str]:
    """Apply every YAML file of `folder`; objects without a namespace go to `namespace`. Returns: what was applied.

    Raises: `UsageError` when a file cannot be read or is refused, and as `install_crds`.
    """
    own = {(kind.api_version, kind.kind): kind for kind in (each.as_kind(operator.group) for each in operator.crds)}
    applied = []
    found = [(path, each) for path in sorted(folder.glob("*.yaml")) for each in _documents(path)]  # noqa: ASYNC240
    async with _client(operator, cluster) as client:
        for path, sample in found:
            with _in_words(f"apply {path.parent.name}/{path.name}", cluster):
                named = (sample["apiVersion"], sample["kind"])
                kind = own.get(named) or Kind(*named)
                if kind.namespaced:
                    sample["metadata"].setdefault("namespace", namespace)
                await _apply_once_served(client, kind, sample, manager=_manager(operator))
                applied.append(identify(sample))
    return applied


async def _apply_once_served(client: Client, kind: Kind, sample: Resource, *, manager: str) -> None:
    """A kind appears some tens of milliseconds after its CRD is established."""
    ends = time.monotonic() + ESTABLISHED_SECONDS
    while True:
        try:
            await client.apply(kind, sample, manager=manager)
        except NotServed:
            if time.monotonic() > ends:
                raise
            await asyncio.sleep(0.05)
        else:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A cluster as one of its ServiceAccounts sees it: a `Cluster` whose tokens are asked for by an administrator."""

    admin: Cluster
    namespace: str
    name: str

    @property
    def source(self) -> str:
        return f"ServiceAccount {self.namespace}/{self.name}"

    async def connect(self) -> Connection:
        """The administrator's connection, with a fresh token.

        Raises: `UsageError`. RBAC: create serviceaccounts/token.
        """
        request: Resource = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        with _in_words(f"ask for a token of ServiceAccount {self.namespace}/{self.name}", self.admin):
            async with Client(self.admin, user_agent=f"{self.name}/run-local") as client:
                answer = await client.create(ACCOUNT, request, subresource="token")
                found = await client.connection()
        return replace(
            found,
            authorization=f"Bearer {answer['status']['token']}",
            cert_file=None,
            key_file=None,
            max_age=min(found.max_age, TOKEN_SECONDS * RENEWED_AFTER),
        )


def _client(operator: Operator, cluster: Cluster) -> Client:
    return Client(cluster, user_agent=operator.user_agent, timeout=ESTABLISHED_SECONDS)


def _manager(operator: Operator) -> str:
    return f"{operator.name}/run-local"


@contextmanager
def _in_words(wish: str, cluster: Cluster) -> Iterator[None]:
    """Turn what the API server answers into one sentence about `wish`."""
    try:
        yield
    except Unreachable as error:
        raise UsageError(f"the API server of {cluster.source} does not answer: {error}") from error
    except Unauthorized as error:
        raise UsageError(f"the API server refuses the credentials of {cluster.source}: log in again") from error
    except Forbidden as error:
        raise UsageError(
            f"{cluster.source} may not {wish}: {error.message}; ask an administrator to apply what "
            "`invoke manifest --local` writes"
        ) from error
    except Refusal as error:
        raise UsageError(f"cannot {wish}: {error.message}") from error
    except ApiError as error:
        raise UsageError(f"cannot {wish}: {error}") from error


def _documents(path: Path) -> Sequence[Any]:
    try:
        found = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each is not None]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    for sample in found:
        try:
            sample["apiVersion"], sample["kind"], sample["metadata"]["name"]
        except (KeyError, TypeError):
            raise UsageError(f"{path} holds something without apiVersion, kind or metadata.name: add them") from None
    return found


async def _established(client: Client, crd: Resource) -> None:
    name = crd["metadata"]["name"]
    try:
        async with asyncio.timeout(ESTABLISHED_SECONDS):
            while not _is_established(await client.get(CRD, name)):  # noqa: ASYNC110  a watch for one answer is too much
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise UsageError(
            f"the CRD {name} is not served after {ESTABLISHED_SECONDS:.0f} s: kubectl describe it"
        ) from error


def _is_established(crd: Resource) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(known["type"] == "Established" and known["status"] == "True" for known in conditions)
