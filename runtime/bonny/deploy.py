"""Deploy: how the manifest runs an operator in a cluster.

    Operator(name="widgets-operator", group="example.com", deploy=Deploy(replicas=2))

You need it to change the manifest. You do not need it to change the running process: `Operator` and BONNY_ variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .errors import OptionError
from .resource import Resource

Customize: TypeAlias = Callable[[list[Resource]], list[Resource]]
"""Gets the objects of a manifest and returns the objects to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """Options of the manifest. They do not change an operator that runs outside of the cluster.

    Raises: `OptionError` for impossible values.
    """

    leader_election: bool = True
    """Set BONNY_LEADER_ELECTION, so that only one replica acts at a time. Default True. `Operator.lease` has the
    times."""

    replicas: int = 1
    """Pods of the Deployment. Default 1; more need `leader_election`."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of every object, in addition to the recommended ones. Default: none."""

    customize: Customize | None = None
    """A function that gets the list of all objects and returns the list to write, which may be the same list with
    changes. With --local or --crds-only it gets fewer objects. Default: the objects are written as they are."""

    certificates: Literal["own", "cert-manager"] = "own"
    """The maker of the certificates of webhooks and of /metrics. Default `own`: the leader makes and rotates them, and
    keeps them in a Secret (needs the package `cryptography`). `cert-manager`: an Issuer and a Certificate in the
    manifest."""

    secure_metrics: bool = False
    """Serve /metrics over TLS on a port of its own, to clients that may read it. Default False: in plain text, to
    everyone who reaches the port of the probes. Clients send a token; the API server says who they are and what they
    may do. The manifest has a ClusterRole to bind, `<operator>-metrics-reader`. `certificates` applies here, too."""

    def __post_init__(self) -> None:
        if not isinstance(self.replicas, int):
            raise OptionError(f"Deploy.replicas is {self.replicas!r}: write a whole number")
        if self.replicas < 1 or (self.replicas > 1 and not self.leader_election):
            raise OptionError(f"Deploy.replicas is {self.replicas}: use 1, or more with leader_election=True")
        if self.certificates not in ("own", "cert-manager"):
            raise OptionError(f"Deploy.certificates is {self.certificates!r}: write 'own' or 'cert-manager'")
        if not isinstance(self.secure_metrics, bool):
            raise OptionError(f"Deploy.secure_metrics is {self.secure_metrics!r}: write True or False")
        if self.customize is not None and not callable(self.customize):
            raise OptionError(f"Deploy.customize is {self.customize!r}: name a function of a list of objects")
