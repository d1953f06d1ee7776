"""Parts: what a manifest may hold or not, by the names that --with and --without take.

You need it to add a part: one row in `PARTS`.
Elsewhere: what every manifest holds (`bundle`), how the parts look (`service`, `policy`, `monitoring`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from bonny.errors import UsageError
from bonny.resource import Resource
from bonny.run.operatorlike import OperatorLike

from .monitoring import alerts, dashboards, service_monitor
from .policy import disruption_budget, network_policy
from .roles import aggregated_roles
from .service import service

__all__ = ["PARTS", "chosen"]


Made_co = TypeVar("Made_co", covariant=True)


class Maker(Protocol[Made_co]):
    """Makes objects for an operator that is deployed to `namespace`."""

    def __call__(self, operator: OperatorLike, *, namespace: str) -> Made_co: ...


class Part(NamedTuple):
    """One optional part."""

    make: Maker[Iterable[Resource]]
    by_default: Callable[[OperatorLike], bool] = lambda _: False
    needs: str = "pods"
    """Another part that it is useless without; `pods` for the Deployment, empty for none."""


def _one(make: Maker[Resource]) -> Maker[Iterable[Resource]]:
    return lambda operator, *, namespace: (make(operator, namespace=namespace),)


# In the order of the manifest: each after what it needs.
PARTS: Final = {
    "roles": Part(lambda operator, **_: aggregated_roles(operator), lambda _: True, needs=""),
    "network-policy": Part(_one(network_policy), lambda _: True),
    "service": Part(_one(service), lambda _: True),
    "pdb": Part(_one(disruption_budget), lambda operator: operator.deploy.replicas > 1),
    "service-monitor": Part(_one(service_monitor), needs="service"),
    "alerts": Part(_one(alerts), needs=""),
    "dashboards": Part(_one(dashboards), needs=""),
}


def chosen(
    operator: OperatorLike, *, include: Collection[str], exclude: Collection[str], deployed: bool
) -> Iterable[Part]:
    """The parts that `operator` has by default, with and without those that are named.

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
