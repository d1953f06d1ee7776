"""Deploy: how the manifest runs an operator in a cluster.

    Operator(name="widgets-operator", group="example.com", deploy=Deploy(replicas=2))

You need it to change the manifest. You do not need it to change the running process: `Operator` and BONNY_ variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .resource import Resource

Customize: TypeAlias = Callable[[list[Resource]], list[Resource]]
"""Gets the objects of a manifest and returns the objects to write."""


class FromSecret(NamedTuple):
    """A Secret in the namespace of the operator: a `key` of it for `Deploy.env`, all its keys for `Deploy.env_from`.

    For values that must not be read in the manifest. The pod does not start before the Secret and the key exist.
    """

    name: str
    key: str = ""


class FromConfigMap(NamedTuple):
    """A ConfigMap, in the same way: `FromConfigMap("dns", "url")`."""

    name: str
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Options of the manifest. They do not change an operator that runs outside of the cluster.

    Impossible values are refused where the manifest is written.
    """

    leader_election: bool = True
    """Set BONNY_LEADER_ELECTION, so that only one replica acts at a time. Default True. `Operator.lease` has the
    times."""

    replicas: int = 1
    """Pods of the Deployment. Default 1; more need `leader_election`."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of every object, in addition to the recommended ones. Default: none."""

    env: Mapping[str, str | FromSecret | FromConfigMap] = field(default_factory=dict)
    """Environment variables of the container: text, which the process gets as it is written here, or `FromSecret(name,
    key)` or `FromConfigMap(name, key)`. BONNY_ variables that the manifest sets itself are refused. Default: none."""

    env_from: tuple[FromSecret | FromConfigMap, ...] = ()
    """Secrets and ConfigMaps whose keys all become variables: `(FromSecret("dns-credentials"),)`. Default: none."""

    egress: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Networks that the network policy opens, with TCP ports: `{"203.0.113.0/24": (5432,)}`. Default: none beyond DNS
    and the ports of API servers, 443 among them, which are open to all destinations."""

    customize: Customize | None = None
    """A function that gets the list of all objects and returns the list to write, which may be the same list with
    changes. With --local or --crds-only it gets fewer objects. Default: the objects are written as they are."""

    certificates: Literal["own", "cert-manager"] = "own"
    """The maker of the certificates of webhooks and of /metrics. Default `own`: the leader makes and rotates them, and
    keeps them in a Secret (needs the package `cryptography`). `cert-manager`: an Issuer and a Certificate in the
    manifest."""

    secure_metrics: bool = False
    """Serve /metrics over TLS on a port of its own, to clients that may read it. Default False: in plain text, to
    everyone who reaches the port of the probes. Clients send a token, which the API server authenticates and
    authorizes. The manifest has a ClusterRole to bind, `<operator>-metrics-reader`. `certificates` applies, too."""
