"""Provision: installs the objects that run-local needs before the operator starts: CRDs, a ServiceAccount, samples.

A second run changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bonny.client import Client, Forbidden, NotServed, Refusal, Unauthorized, Unreachable
from bonny.client.config import Cluster, Connection
from bonny.client.errors import shows_values
from bonny.errors import ApiError, UsageError
from bonny.kinds import Kind, builtin
from bonny.operator import Operator
from bonny.resource import Resource, identify

from ..install import CRD, described, install, is_served, kind_of, kinds_of, misspelt, read_documents
from ..manifest import bundle

if TYPE_CHECKING:
    from ..local_webhooks import Loopback

ACCOUNT: Final = Kind("v1", "ServiceAccount")
# The field manager of `kubectl apply --server-side`, so that a person can continue with it without a conflict.
KUBECTL: Final = "kubectl"
# A person waits for the first answer.
ANSWER_SECONDS: Final = 10.0
# As kubelets do: tokens of an hour, renewed after four fifths of it.
TOKEN_SECONDS: Final = 3600
RENEWED_AFTER: Final = 0.8


async def announce(operator: Operator, cluster: Cluster) -> None:
    """Print the cluster that is about to be changed. Raises: `UsageError`."""
    async with Client(cluster, user_agent=operator.user_agent) as client:
        print(f"installing into {await described(client)}", flush=True)


async def install_crds(operator: Operator, cluster: Cluster, definitions: Sequence[Resource]) -> list[str]:
    """Apply `definitions`, the operator's CRDs, and wait until they are served; returns their names.

    Raises: `UsageError` when the API server does not answer, refuses the credentials, or does not permit it.
    """
    await _apply(operator, cluster, definitions, wish="install CRDs")
    return [crd["metadata"]["name"] for crd in definitions]


async def install_account(operator: Operator, cluster: Cluster) -> Account:
    """Apply the namespace, the ServiceAccount, its permissions and all policies; returns the account to run as.

    Only objects of Kubernetes' own kinds: the cluster may not serve others, such as monitors.
    Raises: `UsageError` as `install_crds`.
    """
    documents = bundle.documents(operator, image=None, namespace=operator.name, local=True)
    own = [each for each in documents if builtin(each["apiVersion"], each["kind"]) and each["kind"] != CRD.kind]
    await _apply(operator, cluster, own, wish="create the operator's ServiceAccount and its permissions")
    return Account(admin=cluster, namespace=operator.name, name=operator.name)


async def register_webhooks(operator: Operator, cluster: Cluster, loopback: Loopback, *, namespace: str) -> None:
    """Let the cluster call the operator's webhooks, which answer already. Raises: `UsageError` as `install_crds`."""
    with _explained("register webhooks", cluster):
        async with Client(cluster, user_agent=operator.user_agent, timeout=ANSWER_SECONDS) as client:
            await loopback.register(client, operator, namespace, manager=f"{operator.name}/run-local")


async def apply_samples(operator: Operator, cluster: Cluster, folder: Path, *, namespace: str) -> list[str]:
    """Apply every YAML file of `folder`; objects without a namespace go to `namespace`. Returns: the applied objects.

    Objects of versions that are not served are left out.

    Raises: `UsageError` when a file cannot be read or is refused, and as `install_crds`.
    """
    kinds = kinds_of(operator)
    texts = {f"{folder.name}/{name}": text for name, text in sample_files(folder).items()}
    samples = {
        name: [document for document in read_documents(name, text) if is_served(operator, document)]
        for name, text in texts.items()
    }
    for name, documents in samples.items():
        for document in documents:
            if problem := misspelt(document, operator):
                raise UsageError(f"{name}: {problem}")
            if kind_of(document, kinds).namespaced:
                document["metadata"].setdefault("namespace", namespace)
        await _apply(operator, cluster, documents, wish=f"apply {name}", manager=KUBECTL)
    return [identify(document) for documents in samples.values() for document in documents]


def sample_files(folder: Path) -> dict[str, bytes]:
    """The YAML files of a folder by name. Raises: `UsageError` when one cannot be read."""
    try:
        return {path.name: path.read_bytes() for path in sorted(folder.glob("*.y*ml"))}
    except OSError as error:
        raise UsageError(f"the sample {error.filename} cannot be read ({error.strerror}): fix that") from error


async def _apply(
    operator: Operator, cluster: Cluster, documents: Sequence[Resource], *, wish: str, manager: str = ""
) -> None:
    with _explained(wish, cluster):
        async with Client(cluster, user_agent=operator.user_agent, timeout=ANSWER_SECONDS) as client:
            await install(client, documents, manager=manager or f"{operator.name}/run-local", kinds=kinds_of(operator))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A cluster as one of its ServiceAccounts sees it: a `Cluster` with tokens that an administrator requests."""

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
        with _explained(f"ask for a token of ServiceAccount {self.namespace}/{self.name}", self.admin):
            async with Client(self.admin, user_agent=f"{self.name}/run-local") as client:
                answer = await client.create(ACCOUNT, request, subresource="token")
                connection = await client.connection()
        return replace(
            connection,
            authorization=f"Bearer {answer['status']['token']}",
            cert_file=None,
            key_file=None,
            max_age=min(connection.max_age, TOKEN_SECONDS * RENEWED_AFTER),
        )


@contextmanager
def _explained(wish: str, cluster: Cluster) -> Iterator[None]:
    """Turn an error of the API server into a sentence that names the failed action."""
    shows_values.set(True)  # the person who reads this wrote the object
    try:
        yield
    except ApiError as error:
        match error:
            case Unreachable():
                text = f"the API server of {cluster.source} does not answer: {error}"
            case Unauthorized():
                text = f"the API server refuses the credentials of {cluster.source}: log in again"
            case Forbidden():
                text = (
                    f"{cluster.source} may not {wish}: {error.message}; ask an administrator to apply the output of "
                    "`invoke manifest --local`"
                )
            case NotServed():
                text = f"cannot {wish}: the cluster does not serve {error.resource.partition(' ')[0]}: install it first"
            case _:
                text = f"cannot {wish}: {error.whole_message if isinstance(error, Refusal) else error}"
        raise UsageError(text) from error
