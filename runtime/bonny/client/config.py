"""Config: where the API server is, who we are, and how to trust it.

The only module that imports the official client, and only for kubeconfig files: its loader knows OIDC, merged files and
inline certificates. In a pod the mounted files are read directly, which saves a heavy import.

Order, as in controller-runtime: what was asked for by name, $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from ..errors import UsageError
from .exec_plugin import run_plugin
from .proxy import environment_proxy, usable_proxy

__all__ = ["Cluster", "Connection", "InCluster", "Kubeconfig", "find_cluster", "own_namespace"]

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# As client-go: the kubelet replaces a token at 80 % of its life, and the old one stays valid a while.
TOKEN_FILE_SECONDS: Final = 60.0
# The loader passes over them, and we would act with the rights of the one who impersonates.
IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """All that one connection needs. Files, not contents: they are read again when they change."""

    server: str
    """The base URL, without a slash at its end."""

    authorization: str | None = field(default=None, repr=False)
    """The Authorization header, scheme included."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    """The name in the server's certificate, where it differs from the URL's."""

    proxy: str | None = field(default=None, repr=False)
    """The URL of the HTTP proxy that leads to the server, with its password."""

    max_age: float = float("inf")
    """Seconds after which `Cluster.connect` should be called again, so that rotated credentials are picked up."""


class Cluster(Protocol):
    """A place to connect to."""

    @property
    def source(self) -> str:
        """Where it was found, for messages."""

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

    async def connect(self) -> Connection:
        advice = "set automountServiceAccountToken: true on the pod"
        token = _token(self.folder / "token", what="ServiceAccount token", advice=advice)
        return Connection(
            server=self.server,
            authorization=f"Bearer {token}",
            ca_file=str(self.folder / "ca.crt"),
            proxy=environment_proxy(self.server, os.environ),
            max_age=TOKEN_FILE_SECONDS,
        )


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

    async def connect(self) -> Connection:
        # Imported here: it is heavy, and an operator in a pod does without it.
        from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415
        from kubernetes.aio.config import ConfigException  # noqa: PLC0415
        from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger  # noqa: PLC0415

        loaded = Configuration()
        try:
            merged = KubeConfigMerger(self.files).config
            loader = KubeConfigLoader(merged, active_context=self.context, config_base_path=None)
            max_age = await self._prepare(merged, loader.current_context["context"].get("user"))
            await loader.load_and_set(loaded)
        except UsageError:
            raise
        except ConfigException as error:
            raise UsageError(self._explain(_without_values(str(error)))) from None
        except Exception as error:  # noqa: BLE001  a loader of files that people write may raise anything
            what = " ".join(_without_values(str(error)).split())  # parsers draw pictures of several lines
            raise UsageError(f"the kubeconfig {self.files} cannot be read: {type(error).__name__}: {what}") from None
        return self._connection(loaded, max_age)

    async def _prepare(self, merged: Any, name: str | None) -> float:
        """Do for the user of that name what the loader does not; returns how long its credentials may be used."""
        entry = merged["users"].get_with_name(name, safe=True) if name and merged.safe_get("users") else None
        if entry is None:
            return float("inf")
        user: dict[str, Any] = entry["user"].value
        folder = Path(entry.path).parent
        named = f"user {name!r} of {self.files}"
        if any(user.get(key) for key in IMPERSONATION):
            raise UsageError(f"{named} impersonates somebody (as), which is not supported: use that one's credentials")
        if plugin := user.pop("exec", None):
            credential = await run_plugin(plugin, folder=folder, user=named)
            if credential.token:
                user["token"] = credential.token
            if credential.client_key_data:
                user["client-certificate-data"] = base64.b64encode(credential.client_certificate_data.encode())
                user["client-key-data"] = base64.b64encode(credential.client_key_data.encode())
            return credential.max_age
        if user.get("tokenFile"):
            user["token"] = _token(folder / user["tokenFile"], what="tokenFile", advice=f"correct {named}")
            return TOKEN_FILE_SECONDS
        return float("inf")

    def _connection(self, loaded: Any, max_age: float) -> Connection:
        """From the official client's Configuration."""
        if not loaded.host:
            raise UsageError(f"{self.source} names no server: add one to its cluster")
        proxy = loaded.proxy and usable_proxy(loaded.proxy, where=f"the proxy-url of {self.source}")
        return Connection(
            server=loaded.host.rstrip("/"),
            authorization=loaded.api_key.get("BearerToken"),
            ca_file=loaded.ssl_ca_cert,
            cert_file=loaded.cert_file,
            key_file=loaded.key_file,
            verify=loaded.verify_ssl,
            server_name=loaded.tls_server_name,
            proxy=proxy or environment_proxy(loaded.host, os.environ),
            max_age=max_age,
        )

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


def _token(file: Path, *, what: str, advice: str) -> str:
    """Raises: `UsageError`."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the {what} {file} cannot be read ({type(error).__name__}): {advice}") from error
    if not token:
        raise UsageError(f"the {what} {file} is empty: wait for whoever writes it, or restart")
    return token


def _without_values(what: str) -> str:
    """The loader names a part of the file by all that is in it, tokens included."""
    return re.sub(r"\{.*\}", "{...}", what, flags=re.DOTALL)


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
