"""Config: address of the API server, our credentials, and its certificate authority.

The only module that imports the official client, and only for kubeconfig files: its loader supports OIDC, merged files
and inline certificates.

Order, as in controller-runtime: an explicit kubeconfig, $KUBECONFIG, the pod's ServiceAccount, ~/.kube/config.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from ..carried import is_present, load, of_tools
from ..errors import UsageError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Same as client-go: the kubelet replaces a token at 80 % of its lifetime, and the old one stays valid for a while.
TOKEN_FILE_SECONDS: Final = 60.0
# The loader ignores these keys, and requests would have the rights of the impersonating user.
IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Settings of a connection. Files are paths, not contents: they are read again when they change."""

    server: str
    """The base URL, without a slash at its end."""

    authorization: str | None = field(default=None, repr=False)
    """The Authorization header, scheme included."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None
    """The name in the server's certificate, if it is not the host of the URL."""

    proxy: str | None = field(default=None, repr=False)
    """The URL of the HTTP proxy, with its password."""

    max_age: float = float("inf")
    """Seconds after which to call `Cluster.connect` again, because credentials are rotated."""


class Cluster(Protocol):
    """An API server to connect to."""

    @property
    def source(self) -> str:
        """The origin of the settings, for messages."""

    async def connect(self) -> Connection:
        """Read the current credentials. Raises: `UsageError` when they cannot be read."""


@dataclass(frozen=True, slots=True)
class InCluster:
    """The ServiceAccount of the pod in which the process runs."""

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
            proxy=_proxy(self.server),
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
        # Imported here: it is heavy, and an operator in a pod does not need it.
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
        except Exception as error:  # noqa: BLE001  the loader raises anything for a malformed file
            what = " ".join(_without_values(str(error)).split())  # messages of parsers have several lines
            raise UsageError(f"the kubeconfig {self.files} cannot be read: {type(error).__name__}: {what}") from None
        return self._connection(loaded, max_age)

    async def _prepare(self, merged: Any, name: str | None) -> float:
        """Prepare the credentials that the loader cannot read; returns the seconds for which they may be used."""
        entry = merged["users"].get_with_name(name, safe=True) if name and merged.safe_get("users") else None
        if entry is None:
            return float("inf")
        user: dict[str, Any] = entry["user"].value
        folder = Path(entry.path).parent
        label = f"user {name!r} of {self.files}"
        if any(user.get(key) for key in IMPERSONATION):
            raise UsageError(
                f"{label} impersonates another user (as), which is not supported: use the other user's credentials"
            )
        if plugin := user.pop("exec", None):
            credentials = of_tools("credentials")
            if credentials is None:
                raise UsageError(
                    f"{label} has a command (exec), which only the developer tools run: use a token or a certificate"
                )
            entries, max_age = await credentials(plugin, folder=folder, user=label)
            user |= entries
            return float(max_age)
        if user.get("tokenFile"):
            user["token"] = _token(folder / user["tokenFile"], what="tokenFile", advice=f"correct {label}")
            return TOKEN_FILE_SECONDS
        return float("inf")

    def _connection(self, loaded: Any, max_age: float) -> Connection:
        """The connection for the official client's Configuration."""
        if not loaded.host:
            raise UsageError(f"{self.source} has no server: add one to its cluster")
        return Connection(
            server=loaded.host.rstrip("/"),
            authorization=loaded.api_key.get("BearerToken"),
            ca_file=loaded.ssl_ca_cert,
            cert_file=loaded.cert_file,
            key_file=loaded.key_file,
            verify=loaded.verify_ssl,
            server_name=loaded.tls_server_name,
            proxy=_proxy(loaded.host, loaded.proxy, where=f"the proxy-url of {self.source}"),
            max_age=max_age,
        )

    def _explain(self, what: str) -> str:
        names, _ = contexts_of(self.files)
        if self.context is not None and self.context not in names:
            has = ", ".join(names) or "no contexts"
            return f"context {self.context!r} does not exist in {self.files}: it has {has}"
        return f"the kubeconfig {self.files} cannot be used: {what}"


def contexts_of(files: str) -> tuple[list[str], str | None]:
    """The names of all contexts of a kubeconfig, and of the current one; none if it cannot be read."""
    from kubernetes.aio.config import list_kube_config_contexts  # noqa: PLC0415

    try:
        contexts, current = list_kube_config_contexts(files)
        return [context["name"] for context in contexts], current["name"]
    except Exception:  # noqa: BLE001  connecting raises the error
        return [], None


def _proxy(server: str, named: str | None = None, *, where: str = "") -> str | None:
    """The URL of the proxy for `server`: the `named` one, else as the environment says if the extra `proxy` is there.

    Raises: `UsageError` for a URL that cannot be used; `MissingExtra`.
    """
    if not named and not is_present("proxy"):
        return None
    proxies = load("proxy", what=where)
    found: str | None = proxies.usable_proxy(named, where=where) if named else None
    return found or proxies.environment_proxy(server, os.environ)


def _token(file: Path, *, what: str, advice: str) -> str:
    """Raises: `UsageError`."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the {what} {file} cannot be read ({type(error).__name__}): {advice}") from error
    if not token:
        raise UsageError(f"the {what} {file} is empty: wait until it is written, or restart")
    return token


def _without_values(what: str) -> str:
    """The loader's messages quote whole parts of the file, tokens included."""
    return re.sub(r"\{.*\}", "{...}", what, flags=re.DOTALL)


def own_namespace() -> str:
    """The namespace of the pod in which the process runs; `default` outside of a cluster."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"


def find_cluster(
    *, kubeconfig: str | None = None, context: str | None = None, environ: Mapping[str, str] | None = None
) -> Cluster:
    """Find the cluster in the order of the module; no connection is opened.

    Raises: `UsageError` when there is none.
    """
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or "/nonexistent") / ".kube" / "config"
    files = kubeconfig or environ.get("KUBECONFIG")
    if files:
        if not any(Path(path).is_file() for path in files.split(os.pathsep) if path):
            variable = "BONNY_KUBECONFIG" if kubeconfig else "KUBECONFIG"
            raise UsageError(f"the kubeconfig {files} in {variable} does not exist: correct the path")
        return Kubeconfig(files, context)
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if host and port and not context:
        return InCluster(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
    if home.is_file():
        return Kubeconfig(str(home), context)
    raise UsageError(
        f"no cluster found: there is no kubeconfig at {home} and KUBECONFIG is not set; "
        "set KUBECONFIG, or use `invoke run-local --sandbox` to start a local control plane"
    )
