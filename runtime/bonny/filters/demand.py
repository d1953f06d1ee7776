"""Demand: the requirements of a pod on a node, from its spec; compiled once for all pods of one shape.

You need it to read a pod's requests: `requests(pod)`. Pods of one template have the same demand, so most results for
the first are reused for the thousandth.

The arithmetic is that of the API (component-helpers, resource/helpers.go, v1.36): containers run together; an init
container runs with the sidecars before it; the larger of both counts; requests of the pod as a whole replace its
containers' requests; during a resize, the largest of the desired, allocated and current amount counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ..core.selector import Requirement, label_selector
from ..scheduler.views import PodView
from .quantity import milli, nano, whole

CPU: Final = "cpu"
# The order in which kube-scheduler checks and reports them.
FIRST: Final = (CPU, "memory", "ephemeral-storage")
# The amounts of a container without requests, for scores (pkg/scheduler/util/pod_resources.go).
SMALL: Final = {CPU: "100m", "memory": "200Mi"}
# Resources that a pod may request as a whole.
POD_LEVEL: Final = (CPU, "memory", "hugepages-")
# Volumes that do not bind a pod to nodes, and are not counted on one.
FREE_VOLUMES: Final = frozenset(
    {"name", "configMap", "csi", "downwardAPI", "emptyDir", "hostPath", "image", "nfs", "projected", "secret"}
)
# Pods are compared with nodes on the event loop; a thousand names of nodes take half of this.
LONGEST_SHAPE: Final = 65_536
RESIZE_INFEASIBLE: Final = ("PodResizePending", "Infeasible")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


# --- the part of a pod that is decoded ---


class _PodPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A part of a pod; fields that are not listed are skipped."""


class Taint(_PodPart, frozen=True):
    """A mark of a node that keeps pods away. `effect`: NoSchedule, NoExecute or PreferNoSchedule."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(_PodPart, frozen=True):
    """A taint that a pod accepts; an empty key or effect matches every one."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether it matches the taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        # Lt and Gt are an alpha feature of Kubernetes; without it they tolerate nothing.
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class _Resources(_PodPart, frozen=True):
    requests: dict[str, str] = {}


class _Port(_PodPart, frozen=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class _Container(_PodPart, frozen=True):
    name: str = ""
    resources: _Resources = _Resources()
    ports: tuple[_Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[dict[str, Any], ...] = ()


class _PodSpec(_PodPart, frozen=True):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: _Resources = _Resources()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] = {}
    topology_spread_constraints: tuple[dict[str, Any], ...] = ()
    resource_claims: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, msgspec.Raw], ...] = ()
    scheduling_group: dict[str, Any] | None = None
    host_network: bool = False
    host_users: bool = True


class _Granted(_PodPart, frozen=True):
    """The resources that a container or a whole pod has, in its status."""

    name: str = ""
    resources: _Resources | None = None
    allocated_resources: dict[str, str] = {}


class _PodStatus(_Granted, frozen=True):
    conditions: tuple[dict[str, Any], ...] = ()
    container_statuses: tuple[_Granted, ...] = ()
    init_container_statuses: tuple[_Granted, ...] = ()


class _Pod(_PodPart, frozen=True):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


_decode_pod: Final = msgspec.json.Decoder(_Pod).decode
_decode_spec: Final = msgspec.json.Decoder(_PodSpec).decode
_encode: Final = msgspec.json.Encoder().encode


# --- the compiled demand ---


class Term(_PodPart, frozen=True):
    """Requirements of node affinity that must all hold."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class AntiAffinity(msgspec.Struct, frozen=True, gc=False):
    """A pod excludes matching pods from its topology domain."""

    topology_key: str
    requirements: tuple[Requirement, ...] | None
    """Requirements on the labels of the excluded pods. None: no pod is excluded."""

    namespaces: tuple[str, ...] | None
    """Their namespaces; empty: the pod's own. None: all, because the labels of namespaces are not watched."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """The requirements of pods of one shape. CPU is in thousandths, everything else in units (bytes, devices)."""

    requests: tuple[tuple[str, int], ...]
    """Requests above 0, in the order in which they are checked."""

    scored: tuple[int, int]
    """CPU and memory for scores, in which containers without requests count as small ones."""

    ports: tuple[tuple[str, str, int], ...]
    """Host ports: address (0.0.0.0: every one), protocol, number."""

    tolerations: tuple[Toleration, ...]
    selector: tuple[Requirement, ...]
    """nodeSelector."""

    terms: tuple[Term, ...] | None
    """Required node affinity: one of the terms must hold. None: the pod has no such affinity."""

    names: frozenset[str] | None
    """The only nodes that `terms` allow. None: any."""

    repels: tuple[AntiAffinity, ...]
    refusal: str
    """The reason why it fits on no node, if it asks for something that is not supported."""

    @property
    def constraints(self) -> Hashable:
        """The requirements on nodes that do not depend on their pods; many shapes have the same."""
        return self.tolerations, self.selector, self.terms, self.names, self.refusal


def demand(pod: PodView) -> Demand:
    """Everything that the pod asks of a node. Raises: `InvalidObject` for a text that is not a quantity."""
    return pod.derived(_demand)


def requests(pod: PodView) -> Mapping[str, int]:
    """Requested resources: CPU in thousandths, everything else in units."""
    return dict(demand(pod).requests)


def _demand(view: PodView) -> Demand:
    pod = _decode_pod(view.item.raw)
    spec = _resized(pod) if pod.status.container_statuses or pod.status.resources else pod.spec
    binding = tuple({"name": msgspec.Raw(b"0")} for volume in spec.volumes if not FREE_VOLUMES.issuperset(volume))
    encoded = _encode(replace(spec, volumes=binding))
    if len(encoded) <= LONGEST_SHAPE:
        return _compiled(encoded)
    return replace(_compiled.__wrapped__(encoded), refusal=f"pod has requirements of more than {LONGEST_SHAPE} bytes")


@lru_cache(maxsize=4096)
def _compiled(shape: bytes) -> Demand:
    spec = _decode_spec(shape)
    asked, scored = amounts(_requests(spec, {})), amounts(_requests(spec, SMALL))
    required = _required(spec, "nodeAffinity")
    terms = required and msgspec.convert(required["nodeSelectorTerms"], tuple[Term, ...])
    terms = terms and tuple(term for term in terms if term != Term())  # an empty term holds for no node
    names = required_names(terms) if terms else None
    running = [*filter(_is_sidecar, spec.init_containers), *spec.containers]
    ports = [port for container in running for port in container.ports if port.host_port > 0]
    return Demand(
        requests=tuple((name, asked[name]) for name in [*FIRST, *sorted(asked.keys() - set(FIRST))] if asked.get(name)),
        scored=(scored.get(CPU, 0), scored.get("memory", 0)),
        ports=tuple((port.host_ip or "0.0.0.0", port.protocol, port.host_port) for port in ports),  # noqa: S104
        tolerations=spec.tolerations,
        selector=label_selector({"matchLabels": spec.node_selector}),
        terms=terms,
        names=names,
        repels=tuple(map(_anti_affinity, _required(spec, "podAntiAffinity") or ())),
        refusal="pod affinity terms conflict" if names is not None and not names else _refusal(spec),
    )


def amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Convert sums in billionths to the units of `Demand`."""
    return {name: milli(amount) if name == CPU else whole(amount) for name, amount in nanos.items()}


def required_names(terms: Iterable[Term]) -> frozenset[str] | None:
    """The only nodes that the terms allow, of which one must hold; None when a term does not name nodes."""
    names: frozenset[str] = frozenset()
    for term in terms:
        allowed = [frozenset(field.values) for field in term.match_fields if field.operator == "In"]
        if not allowed:
            return None
        names |= frozenset.intersection(*allowed)
    return names


def _required(spec: _PodSpec, affinity: str) -> Any:
    return spec.affinity.get(affinity, {}).get(REQUIRED)


def _is_sidecar(container: _Container) -> bool:
    return container.restart_policy == "Always"


def _nanos(requests: Mapping[str, str]) -> Counter[str]:
    return Counter({name: nano(amount) for name, amount in requests.items()})


def _requests(spec: _PodSpec, missing: Mapping[str, str]) -> Counter[str]:
    """Billionths of each resource; `missing` has the amounts of containers that do not request a resource."""
    together, peak = Counter[str](), Counter[str]()
    for container in spec.init_containers:
        own = _nanos({**missing, **container.resources.requests})
        if _is_sidecar(container):
            together.update(own)
        else:  # it runs with the sidecars before it
            peak.update({name: max(0, own[name] + together[name] - peak[name]) for name in own})
    for container in spec.containers:
        together.update(_nanos({**missing, **container.resources.requests}))
    together |= peak
    whole_pod = {name: amount for name, amount in spec.resources.requests.items() if name.startswith(POD_LEVEL)}
    return Counter({**together, **_nanos(whole_pod)}) + _nanos(spec.overhead)


def _resized(pod: _Pod) -> _PodSpec:
    """The spec with the requests that count during a resize."""
    spec, status = pod.spec, pod.status
    infeasible = any((each["type"], each.get("reason")) == RESIZE_INFEASIBLE for each in status.conditions)
    granted = {each.name: each for each in (*status.container_statuses, *status.init_container_statuses)}

    def largest(part: Any, has: _Granted | None) -> Any:
        desired = part.resources.requests
        if has is None or has.resources is None or not desired:
            return part
        lists = [has.resources.requests, has.allocated_resources, *([] if infeasible else [desired])]
        names = sorted({name for amounts in lists for name in amounts})
        requests = {name: max((each[name] for each in lists if name in each), key=nano) for name in names}
        return replace(part, resources=_Resources(requests))

    resized: _PodSpec = replace(
        largest(spec, status),
        containers=tuple(largest(each, granted.get(each.name)) for each in spec.containers),
        init_containers=tuple(
            largest(each, granted.get(each.name)) if _is_sidecar(each) else each for each in spec.init_containers
        ),
    )
    return resized


def _anti_affinity(term: Mapping[str, Any]) -> AntiAffinity:
    return AntiAffinity(
        topology_key=term["topologyKey"],
        requirements=None if term.get("labelSelector") is None else label_selector(term["labelSelector"]),
        namespaces=None if term.get("namespaceSelector") is not None else tuple(term.get("namespaces") or ()),
    )


def _refusal(spec: _PodSpec) -> str:
    """The first unsupported thing that the pod asks for: such pods fit on no node, so that none is misplaced."""
    rules = [rule for each in (*spec.containers, *spec.init_containers) for rule in each.restart_policy_rules]
    asked = {
        "required pod affinity": _required(spec, "podAffinity"),
        "required pod anti-affinity": _required(spec, "podAntiAffinity"),
        "topology spread constraints": any(
            spread["whenUnsatisfiable"] == "DoNotSchedule" for spread in spec.topology_spread_constraints
        ),
        "volumes that may bind it to nodes": spec.volumes,
        "resource claims": spec.resource_claims,
        "a scheduling group": spec.scheduling_group,
        "user namespaces in the host's network": spec.host_network and not spec.host_users,
        "restarts of all containers": any(rule.get("action") == "RestartAllContainers" for rule in rules),
    }
    return next((f"pod has {name}, which this scheduler does not honour" for name, has in asked.items() if has), "")
