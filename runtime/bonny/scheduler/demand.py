"""Demand: what a pod asks of a node, out of its spec; compiled once for all pods of one shape.

You need it to read what a pod requests: `pod.demand`. Pods of one template ask the same, so most decisions about the
thousandth were made for the first.

The arithmetic is that of the API (component-helpers, resource/helpers.go, v1.36): containers run together; an init
container runs with the sidecars before it; the larger of both counts; requests of the pod as a whole take the place of
its containers'; while a resize is under way, the largest of what is wanted, allocated and in force counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from .quantity import milli, nano, whole
from .selector import Requirement, Term, label_selector, required_names

__all__ = ["CPU", "AntiAffinity", "Demand", "Pod", "Taint", "Toleration", "amounts", "decode_pod", "demand_of"]

CPU: Final = "cpu"
# The order in which kube-scheduler looks at them, and names them.
FIRST: Final = (CPU, "memory", "ephemeral-storage")
# What a container without a request counts for where nodes are scored (pkg/scheduler/util/pod_resources.go).
SMALL: Final = {CPU: "100m", "memory": "200Mi"}
# What a pod may request as a whole.
POD_LEVEL: Final = (CPU, "memory", "hugepages-")
# Volumes that bind a pod to no node, and are not counted for one.
FREE_VOLUMES: Final = frozenset(
    {"name", "configMap", "csi", "downwardAPI", "emptyDir", "hostPath", "image", "nfs", "projected", "secret"}
)
RESIZE_INFEASIBLE: Final = ("PodResizePending", "Infeasible")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


# --- the part of a pod that is decoded --------------------------------------------------------------------------------


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A part of an object; what it does not name is skipped."""


class Taint(_Part, frozen=True):
    """A mark of a node that keeps pods away. `effect`: NoSchedule, NoExecute or PreferNoSchedule."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(_Part, frozen=True):
    """What a pod puts up with; an empty key or effect means every one."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        # Lt and Gt are an alpha feature of Kubernetes; without it they tolerate nothing.
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class _Resources(_Part, frozen=True):
    requests: dict[str, str] = {}


class _Port(_Part, frozen=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class _Container(_Part, frozen=True):
    name: str = ""
    resources: _Resources = _Resources()
    ports: tuple[_Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[dict[str, Any], ...] = ()


class _Spec(_Part, frozen=True):
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
    # Of no concern to any node, so not a part of the shape.
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    scheduling_gates: tuple[dict[str, str], ...] = ()


class _ContainerStatus(_Part, frozen=True):
    name: str = ""
    resources: _Resources | None = None
    allocated_resources: dict[str, str] = {}


class _Status(_Part, frozen=True):
    phase: str = ""
    conditions: tuple[dict[str, Any], ...] = ()
    resources: _Resources | None = None
    allocated_resources: dict[str, str] = {}
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


class _Meta(_Part, frozen=True):
    creation_timestamp: str | None = None


class Pod(_Part, frozen=True):
    """A pod, as far as a scheduler looks."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


decode_pod: Final = msgspec.json.Decoder(Pod).decode
_decode_spec: Final = msgspec.json.Decoder(_Spec).decode
_encode: Final = msgspec.json.Encoder().encode


# --- what is made of it -----------------------------------------------------------------------------------------------


class AntiAffinity(msgspec.Struct, frozen=True, gc=False):
    """A pod wants none of those that match in its own topology domain."""

    topology_key: str
    requirements: tuple[Requirement, ...] | None
    """Of the labels of those that are meant. None: nobody is."""

    namespaces: tuple[str, ...] | None
    """Where they are; empty: where the pod is. None: chosen by labels of namespaces, which are not followed: any."""


class Demand(msgspec.Struct, frozen=True, gc=False):
    """What pods of one shape ask for. CPU is in thousandths, everything else in units (bytes, devices)."""

    requests: tuple[tuple[str, int], ...]
    """Without those of 0, in the order in which they are checked."""

    scored: tuple[int, int]
    """CPU and memory as they count for scores: containers without a request are taken for small ones."""

    ports: tuple[tuple[str, str, int], ...]
    """Host ports: address (0.0.0.0: every one), protocol, number."""

    tolerations: tuple[Toleration, ...]
    selector: tuple[Requirement, ...]
    """nodeSelector."""

    terms: tuple[Term, ...] | None
    """Required node affinity: one must hold. None: there is none."""

    names: frozenset[str] | None
    """The only nodes that `terms` leave. None: they leave that open."""

    repels: tuple[AntiAffinity, ...]
    refusal: str
    """Why no node is right for it, if it asks for what is not honoured here."""

    @property
    def constraints(self) -> Hashable:
        """What of it concerns nodes as such, whatever runs there; many shapes have the same."""
        return self.tolerations, self.selector, self.terms, self.names, self.refusal


def demand_of(pod: Pod) -> Demand:
    """Raises: `InvalidObject` for a quantity that is none."""
    spec = _resized(pod) if pod.status.container_statuses or pod.status.resources else pod.spec
    binding = tuple({"name": msgspec.Raw(b"0")} for volume in spec.volumes if not FREE_VOLUMES.issuperset(volume))
    shape = replace(spec, volumes=binding, node_name="", scheduler_name="", priority=0, scheduling_gates=())
    return _compiled(_encode(shape))


@lru_cache(maxsize=4096)
def _compiled(shape: bytes) -> Demand:
    spec = _decode_spec(shape)
    asked, scored = amounts(_requests(spec, {})), amounts(_requests(spec, SMALL))
    required = spec.affinity.get("nodeAffinity", {}).get(REQUIRED)
    terms = required and tuple(filter(None, msgspec.convert(required["nodeSelectorTerms"], tuple[Term, ...])))
    names = required_names(terms) if terms else None
    repels = spec.affinity.get("podAntiAffinity", {}).get(REQUIRED) or ()
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
        repels=tuple(map(_anti_affinity, repels)),
        refusal="pod affinity terms conflict" if names is not None and not names else _refusal(spec),
    )


def amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Sums in billionths as they are compared: CPU in thousandths, everything else in units."""
    return {name: milli(amount) if name == CPU else whole(amount) for name, amount in nanos.items()}


def _is_sidecar(container: _Container) -> bool:
    return container.restart_policy == "Always"


def _nanos(requests: Mapping[str, str]) -> Counter[str]:
    return Counter({name: nano(amount) for name, amount in requests.items()})


def _requests(spec: _Spec, missing: Mapping[str, str]) -> Counter[str]:
    """Billionths of each resource; `missing` is what a container counts for that does not name one of these."""
    together, sidecars, peak = Counter[str](), Counter[str](), Counter[str]()
    for container in spec.containers:
        together += _nanos({**missing, **container.resources.requests})
    for container in spec.init_containers:
        own = _nanos({**missing, **container.resources.requests})
        if _is_sidecar(container):
            together += own
            sidecars += own
            peak |= sidecars
        else:
            peak |= own + sidecars
    together |= peak
    whole_pod = {name: amount for name, amount in spec.resources.requests.items() if name.startswith(POD_LEVEL)}
    return Counter({**together, **_nanos(whole_pod)}) + _nanos(spec.overhead)


def _resized(pod: Pod) -> _Spec:
    """The spec with what counts while a resize is under way."""
    spec, status = pod.spec, pod.status
    infeasible = any((known["type"], known.get("reason")) == RESIZE_INFEASIBLE for known in status.conditions)
    running = {found.name: found for found in (*status.container_statuses, *status.init_container_statuses)}

    def largest(wanted: _Resources, found: _Status | _ContainerStatus | None) -> _Resources:
        if found is None or found.resources is None or not wanted.requests:
            return wanted
        lists = [found.resources.requests, found.allocated_resources, *([] if infeasible else [wanted.requests])]
        names = sorted({name for known in lists for name in known})
        return _Resources({name: max((known[name] for known in lists if name in known), key=nano) for name in names})

    def counted(known: _Container) -> _Container:
        return replace(known, resources=largest(known.resources, running.get(known.name)))

    return replace(
        spec,
        containers=tuple(map(counted, spec.containers)),
        init_containers=tuple(counted(known) if _is_sidecar(known) else known for known in spec.init_containers),
        resources=largest(spec.resources, status),
    )


def _anti_affinity(term: Mapping[str, Any]) -> AntiAffinity:
    return AntiAffinity(
        topology_key=term["topologyKey"],
        requirements=None if term.get("labelSelector") is None else label_selector(term["labelSelector"]),
        namespaces=None if term.get("namespaceSelector") is not None else tuple(term.get("namespaces") or ()),
    )


def _refusal(spec: _Spec) -> str:
    """The first thing that the pod asks for and that is not honoured (docs/scheduler.md)."""
    rules = [rule for known in (*spec.containers, *spec.init_containers) for rule in known.restart_policy_rules]
    spreads = spec.topology_spread_constraints
    asked = {
        "required pod affinity": spec.affinity.get("podAffinity", {}).get(REQUIRED),
        "required pod anti-affinity": spec.affinity.get("podAntiAffinity", {}).get(REQUIRED),
        "topology spread constraints": any(known["whenUnsatisfiable"] == "DoNotSchedule" for known in spreads),
        "volumes that may bind it to nodes": spec.volumes,
        "resource claims": spec.resource_claims,
        "a scheduling group": spec.scheduling_group,
        "user namespaces in the host's network": spec.host_network and not spec.host_users,
        "restarts of all containers": any(rule.get("action") == "RestartAllContainers" for rule in rules),
    }
    return next((f"pod has {name}, which this scheduler does not honour" for name, has in asked.items() if has), "")
