"""Optional objects: the parts of a manifest that one may choose, by the names that --with and --without take.

You need it to add a part: one row in `PARTS`.
Elsewhere: the objects of every manifest (`bundle`), how the parts look (`objects/*.yaml`, `monitoring`, `roles`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, TypeAlias

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource

from ..uses import has_webhooks
from .deployment import METRICS_PORT, PORT
from .monitoring import alerts, dashboards, service_monitor
from .roles import aggregated_roles
from .template import read_object

Make: TypeAlias = Callable[[Operator, str], Iterable[Resource]]
"""Makes the objects of a part for an operator that is deployed to a namespace."""


class ManifestPart(NamedTuple):
    """One optional part."""

    make: Make
    by_default: Callable[[Operator], bool] = lambda _: False
    needs: str = "pods"
    """Another part that it is useless without; `pods` for the Deployment, empty for none."""


def _file(name: str) -> Make:
    return lambda operator, namespace: [read_object(name, operator, namespace)]


def _network_policy(operator: Operator, namespace: str) -> Iterable[Resource]:
    policy = read_object("network-policy", operator, namespace)
    opened = policy["spec"]["ingress"][0]["ports"]
    if has_webhooks(operator):
        # No label selects the API server: the port is open to all, as that of the probes is.
        opened.append({"protocol": "TCP", "port": PORT})
    if operator.deploy.secure_metrics:
        opened.append({"protocol": "TCP", "port": METRICS_PORT})
    for network, ports in operator.deploy.egress.items():
        allowed = [{"protocol": "TCP", "port": port} for port in ports]
        policy["spec"]["egress"].append({"to": [{"ipBlock": {"cidr": network}}], "ports": allowed})
    return [policy]


def _service(operator: Operator, namespace: str) -> Iterable[Resource]:
    service = read_object("service", operator, namespace)
    if operator.deploy.secure_metrics:
        service["spec"]["ports"] = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    return [service]


# In the order of the manifest: each after the objects that it needs.
PARTS: Final = {
    "roles": ManifestPart(lambda operator, _: aggregated_roles(operator), lambda _: True, needs=""),
    "network-policy": ManifestPart(_network_policy, lambda _: True),
    "service": ManifestPart(_service, lambda _: True),
    "pdb": ManifestPart(_file("pdb"), lambda operator: operator.deploy.replicas > 1),
    "service-monitor": ManifestPart(service_monitor, needs="service"),
    "alerts": ManifestPart(alerts, needs=""),
    "dashboards": ManifestPart(dashboards, needs=""),
}


def chosen(
    operator: Operator, *, include: Collection[str], exclude: Collection[str], deployed: bool
) -> Iterable[ManifestPart]:
    """The default parts of `operator`, plus `include`, minus `exclude`.

    Parts about pods are left out where none are `deployed`.
    Raises: `UsageError` for an unknown name, and for a part that cannot be there.
    """
    for flag, names in (("--with", include), ("--without", exclude)):
        unknown = next((name for name in names if name not in PARTS), None)
        if unknown is not None:
            raise UsageError(f"there is no part {unknown!r} of a manifest: {flag} takes {', '.join(PARTS)}")
    both = next((name for name in include if name in exclude), None)
    if both is not None:
        raise UsageError(f"--with and --without both name {both}: leave one of them out")
    there = {"", "pods"} if deployed else {""}
    for name, part in PARTS.items():
        wanted = name in include or (name not in exclude and part.by_default(operator))
        if wanted and part.needs in there:
            there.add(name)
            yield part
        elif name in include:
            raise UsageError(f"{name} needs {part.needs}, which this manifest does not have: leave out {name}, too")
