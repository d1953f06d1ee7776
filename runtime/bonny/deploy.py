"""Deploy: how the manifest runs an operator in a cluster.

    Operator(name="widgets-operator", group="example.com", deploy=Deploy(replicas=2))

You need it to change the manifest. You do not need it to change the running process: `Operator` and BONNY_ variables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Literal, NamedTuple, TypeAlias

from .errors import OptionError
from .naming import check_tuple, is_subdomain
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

    Raises: `OptionError` for impossible values.
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
        self._check_environment()
        if self.customize is not None and not callable(self.customize):
            raise OptionError(f"Deploy.customize is {self.customize!r}: name a function of a list of objects")

    def _check_environment(self) -> None:
        for option, given in (("env", self.env), ("egress", self.egress)):
            if not isinstance(given, Mapping):
                raise OptionError(f"Deploy.{option} is {given!r}: write a mapping")
        for name, value in self.env.items():
            if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                raise OptionError(f"Deploy.env has {name!r}: use letters, digits and _, and no digit first")
            if not isinstance(value, str) and not _names(value, r"[-.\w]+"):
                raise OptionError(f'Deploy.env has {name}={value!r}: write text, or FromSecret("name", "key")')
        check_tuple("Deploy", "env_from", self.env_from, (FromSecret, FromConfigMap), 'FromSecret("name")')
        if wrong := next((each for each in self.env_from if not _names(each, "")), None):
            raise OptionError(f"Deploy.env_from has {wrong}: use the name of an object, without a key")
        for network, ports in self.egress.items():
            check_tuple("Deploy", f"egress[{network!r}]", ports, int, "5432")
            try:
                ip_network(network)
            except ValueError as error:
                raise OptionError(f"Deploy.egress: {error}: write a network, for example 203.0.113.0/24") from None
            if not ports or not all(0 < port < 65536 for port in ports):
                raise OptionError(f"Deploy.egress[{network!r}] is {ports}: write TCP ports from 1 to 65535")


def _names(source: object, key: str) -> bool:
    """Whether it names an object that can exist, and a key of this pattern."""
    if not isinstance(source, FromSecret | FromConfigMap):
        return False
    return is_subdomain(source.name) and re.fullmatch(key, source.key, re.ASCII) is not None
