"""Config: where the API server is, who we are, and how to trust it.

The only module that imports the official client, and only for kubeconfig files: its loader knows exec plugins, OIDC,
merged files and inline certificates. In a pod the mounted files are read directly, which saves a heavy import.

Order, as in controller-runtime: what was asked for by name, $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ..errors import UsageError

__all__ = ["Cluster", "Connection", "InCluster", "Kubeconfig", "find_cluster", "own_namespace"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """All that one connection needs. Files, not contents: they are read again when they change."""

    server: str
    """The base URL, without a slash at its end."""

    authorization: str | None = None
    """The Authorization header, scheme included."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    """The name in the server's certificate, where it differs from the URL's."""

    proxy: str | None = None


class Cluster(Protocol):
    """A place to connect to."""

    @property
    def source(self) -> str:
        """Where it was found, for messages."""

    @property
    def max_age(self) -> float:
        """Seconds after which `connect` should be called again, so that rotated credentials are picked up."""

    async def connect(self) -> Connection:
        """Read the current credentials. Raises: `UsageError` when they cannot be read."""


@dataclass(frozen=True, slots=True)
class InCluster:
    """The ServiceAccount of the pod that we run in."""

    server: str
    folder: Path = SERVICE_ACCOUNT

    @property
    def source(self) -> str:
        return f"the pod's ServiceAccount ({self.folder})"

    @property
    def max_age(self) -> float:
        # As client-go: a token is replaced by the kubelet at 80 % of its life, and the old one stays valid a while.
        return 60.0

    async def connect(self) -> Connection:
        try:
            token = (self.folder / "token").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"the ServiceAccount token {self.folder}/token cannot be read ({type(error).__name__}): "
                "set automountServiceAccountToken: true on the pod"
            ) from error
        if not token:
            raise UsageError(f"the ServiceAccount token {self.folder}/token is empty: wait for the kubelet, or restart")
        return Connection(server=self.server, authorization=f"Bearer {token}", ca_file=str(self.folder / "ca.crt"))


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A context of a kubeconfig file."""

    files: str
    """One path, or several joined by the system's path separator, as in $KUBECONFIG."""

    context: str | None = None
    """Default None: the file's current context."""

    @property
    def source(self) -> str:
        return f"context {self.context!r} of {self.files}" if self.context else f"the current context of {self.files}"

    @property
    def max_age(self) -> float:
        # Exec plugins are slow and may ask a person something: only when the server refuses what we have.
        return float("inf")

    async def connect(self) -> Connection:
        # Imported here: it is heavy, and an operator in a pod does without it.
        from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415
        from kubernetes.aio.config import ConfigException, load_kube_config  # noqa: PLC0415

        loaded = Configuration()
        try:
            await load_kube_config(
                config_file=self.files, context=self.context, client_configuration=loaded, persist_config=False
            )
        except ConfigException as error:
            raise UsageError(self._explain(str(error))) from error
        except Exception as error:
            what = " ".join(str(error).split())  # parsers draw pictures of several lines
            raise UsageError(f"the kubeconfig {self.files} cannot be read: {type(error).__name__}: {what}") from error
        return _connection(loaded)

    def _explain(self, what: str) -> str:
        names = self._contexts()
        if self.context is not None and self.context not in names:
            known = ", ".join(names) or "none at all"
            return f"context {self.context!r} does not exist in {self.files}: it has {known}"
        return f"the kubeconfig {self.files} cannot be used: {what}"

    def _contexts(self) -> list[str]:
        from kubernetes.aio.config import list_kube_config_contexts  # noqa: PLC0415

        try:
            return [context["name"] for context in list_kube_config_contexts(self.files)[0]]
        except Exception:  # noqa: BLE001  only asked in order to explain another failure
            return []


def _connection(loaded: Any) -> Connection:
    """From the official client's Configuration."""
    authorization = loaded.api_key.get("BearerToken")
    return Connection(
        server=loaded.host.rstrip("/"),
        authorization=authorization,
        ca_file=loaded.ssl_ca_cert,
        cert_file=loaded.cert_file,
        key_file=loaded.key_file,
        verify=loaded.verify_ssl,
        server_name=loaded.tls_server_name,
        proxy=loaded.proxy,
    )


def own_namespace() -> str:
    """The namespace of the pod that we run in; `default` outside of a cluster."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def find_cluster(
    *, kubeconfig: str | None = None, context: str | None = None, environ: Mapping[str, str] | None = None
) -> Cluster:
    """Decide which cluster is meant; nothing is connected yet.

    Raises: `UsageError` when there is none.
    """
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or "/nonexistent") / ".kube" / "config"
    named = kubeconfig or environ.get("KUBECONFIG")
    if named:
        paths = [path for path in named.split(os.pathsep) if path]
        if not any(Path(path).is_file() for path in paths):
            where = "BONNY_KUBECONFIG" if kubeconfig else "KUBECONFIG"
            raise UsageError(f"the kubeconfig {named} named by {where} does not exist: correct the path")
        return Kubeconfig(named, context)
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and not context:
        return InCluster(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    if home.is_file():
        return Kubeconfig(str(home), context)
    raise UsageError(
        f"no cluster to talk to: there is no kubeconfig at {home} and KUBECONFIG is not set; "
        "point KUBECONFIG at one, or use `invoke run-local --sandbox` for a control plane of your own"
    )
