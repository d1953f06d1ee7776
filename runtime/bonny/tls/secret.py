"""Secret: where the certificate of one server is kept, and for which hosts it is.

The manifest brings the Secret, empty. The operator can neither create nor delete it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..kinds import Kind
from ..resource import Key, Resource

SECRET: Final = Kind("v1", "Secret")

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
"""Keys of the Secret, as cert-manager names them: the chain that is served, its key, and the CAs that clients trust."""


class TlsSecret(NamedTuple):
    """The Secret of one server. Each has its own: a reader of one cannot answer in place of another server."""

    operator: str
    purpose: str
    """The use of the server in a word, by which messages name the certificate."""

    service: str
    """The Service that clients call."""

    namespace: str
    """Of both."""

    own: bool
    """Whether the operator fills it; otherwise cert-manager does."""

    @property
    def key(self) -> Key:
        """Namespace and name of the Secret."""
        return Key(self.namespace, f"{self.operator}-{self.purpose}-tls")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names in the certificate; clients ask for the first one."""
        host = f"{self.service}.{self.namespace}"
        return f"{host}.svc", host, f"{host}.svc.cluster.local"

    def rule(self) -> Resource:
        """The RBAC rule to read the Secret, and to fill it if it is the operator's own."""
        verbs = ["get", "list", "watch", *(["patch"] if self.own else [])]
        return {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [self.key.name], "verbs": verbs}
