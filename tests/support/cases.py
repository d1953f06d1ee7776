"""Cases: nodes, the pods that run on them, and for each node one pod to be judged; from a seed.

A case is one node and one pod. The pod selects its node by a label, so that many cases can share a cluster: what every
other node says of the pod is that it does not match.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from bonny.resource import Resource
from tests.support.scheduling import node, pod, requesting

CASE = "example.com/case"
RUNTIME_CLASS: Resource = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
}

CPUS = ["0", "1m", "100m", "0.5", "1", "1500m"]
MEMORIES = ["0", "1", "64Mi", "100M", "512Mi", "1.5Gi", "1e9"]
ZONES = ["a", "b", "c"]
TAINTS = ["gpu", "spot", "node.kubernetes.io/unschedulable"]
EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
PORTS = [80, 443, 8080]
ADDRESSES = ["", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::"]


@dataclass(frozen=True, slots=True)
class Case:
    """One node with what runs there, and the pod to be judged."""

    node: Resource
    running: tuple[Resource, ...]
    judged: Resource


@dataclass(slots=True)
class Generator:
    """Makes cases from a seed. What is likely is chosen so that about half of the pods fit."""

    seed: int
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def rarely(self, share: float) -> bool:
        return self.chance.random() < share

    def case(self, number: int, *, scheduler: str) -> Case:
        name = f"case-{self.seed}-{number}"
        made = self._node(name)
        running = tuple(
            self._pod(f"{name}-r{index}", node=name, phase="Running", **self._dislikes())
            for index in range(self.chance.randrange(3))
        )
        labels = {"app": self.chance.choice(["noisy", "quiet"])}
        judged = self._pod(name, scheduler=scheduler, labels=labels, **self._wishes(name))
        judged["spec"]["nodeSelector"] = {**judged["spec"].get("nodeSelector", {}), CASE: name}
        return Case(made, running, judged)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> Resource:
        more: dict[str, str] = {}
        if self.rarely(0.7):
            more["example.com/gpu"] = str(self.chance.randrange(5))
        if self.rarely(0.7):
            more["hugepages-2Mi"] = self.chance.choice(["0", "8Mi", "64Mi"])
        if self.rarely(0.9):
            more["ephemeral-storage"] = self.chance.choice(["1Gi", "10Gi"])
        labels = {
            CASE: name,
            "zone": self.chance.choice(ZONES),
            "rank": self.chance.choice(["1", "5", "10", "007", "x"]),
        }
        if self.rarely(0.3):
            labels["disk"] = "ssd"
        taints = [
            {"key": key, "value": self.chance.choice(["", "yes", "5"]), "effect": self.chance.choice(EFFECTS)}
            for key in TAINTS
            if self.rarely(0.1)
        ]
        return node(
            name,
            cpu=self.chance.choice(["1", "2", "4", "8", "3900m", "16"]),
            memory=self.chance.choice(["1Gi", "4Gi", "8Gi", "4000000000", "16Gi"]),
            pods=self.chance.choice(["0", "1", "3", *["110"] * 9]),
            labels=labels,
            taints=taints,
            unschedulable=self.rarely(0.05),
            **more,
        )

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _pod(self, name: str, **fields: Any) -> Resource:
        spec: Resource = {"containers": [self._container(index) for index in range(self.chance.choice([1, 1, 2]))]}
        if self.rarely(0.3):
            spec["initContainers"] = [
                self._container(index, init=True) for index in range(self.chance.choice([1, 2, 3]))
            ]
        if self.rarely(0.1):
            spec["runtimeClassName"] = "heavy"
        if self.rarely(0.04):
            # At least what its containers ask together, or the API server refuses it.
            spec["resources"] = {"requests": {"cpu": "16", "memory": "16Gi"}}
        spec["terminationGracePeriodSeconds"] = 0
        return pod(name, **{**spec, **fields})

    def _container(self, index: int, *, init: bool = False) -> Resource:
        requests: dict[str, str] = {}
        if self.rarely(0.7):
            requests["cpu"] = self.chance.choice(CPUS)
        if self.rarely(0.6):
            requests["memory"] = self.chance.choice(MEMORIES)
        if self.rarely(0.2):
            requests["ephemeral-storage"] = self.chance.choice(["1", "100Mi", "2Gi"])
        limits: dict[str, str] = {}
        if self.rarely(0.1):
            limits["example.com/gpu"] = requests["example.com/gpu"] = self.chance.choice(["1", "2"])
        if self.rarely(0.08) and (requests.get("cpu") or requests.get("memory")):
            limits["hugepages-2Mi"] = requests["hugepages-2Mi"] = self.chance.choice(["2Mi", "8Mi"])
        made = requesting(requests, name=f"{'init' if init else 'main'}-{index}")
        if limits:
            made["resources"]["limits"] = limits
        if init and self.rarely(0.5):
            made["restartPolicy"] = "Always"
        if self.rarely(0.12):
            number = self.chance.choice(PORTS)
            port: Resource = {
                "containerPort": number,
                "hostPort": number,
                "protocol": self.chance.choice(["TCP", "UDP"]),
            }
            if address := self.chance.choice(ADDRESSES):
                port["hostIP"] = address
            made["ports"] = [port]
        return made

    def _dislikes(self) -> dict[str, Any]:
        """Whom a pod that runs wants nowhere near; in the whole zone hardly ever, for that concerns many cases."""
        if not self.rarely(0.1):
            return {}
        expression = {"key": "app", "operator": self.chance.choice(["In", "NotIn"]), "values": ["noisy"]}
        term = {
            "topologyKey": "zone" if self.rarely(0.01) else "kubernetes.io/hostname",
            "labelSelector": {"matchExpressions": [expression]} if self.rarely(0.9) else None,
        }
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    def _wishes(self, name: str) -> dict[str, Any]:
        """What a judged pod asks of its node beyond room."""
        wishes: dict[str, Any] = {}
        if self.rarely(0.5):
            wishes["tolerations"] = [self._toleration() for _ in range(self.chance.choice([1, 2, 3]))]
        if self.rarely(0.08):
            wishes["nodeSelector"] = {"zone": self.chance.choice(ZONES)}
        if self.rarely(0.25):
            terms = [self._term(name) for _ in range(self.chance.choice([1, 1, 2]))]
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
            wishes["affinity"] = {"nodeAffinity": required}
        if self.rarely(0.05):
            wishes["volumes"] = [{"name": "scratch", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/tmp"}}]
        if self.rarely(0.03):
            wishes |= self._not_honoured(name)
        if self.rarely(0.03):
            wishes["schedulingGates"] = [{"name": "example.com/gate"}]
        return wishes

    def _not_honoured(self, name: str) -> dict[str, Any]:
        """Wishes that concern no other case."""
        mine = {"labelSelector": {"matchLabels": {CASE: name}}, "topologyKey": "kubernetes.io/hostname"}
        spread = {**mine, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        return self.chance.choice(
            [
                {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [mine]}}},
                {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [mine]}}},
                {"topologySpreadConstraints": [spread]},
                {"volumes": [{"name": "claimed", "persistentVolumeClaim": {"claimName": "missing"}}]},
                {"resourceClaims": [{"name": "device", "resourceClaimName": "missing"}]},
            ]
        )

    def _toleration(self) -> Resource:
        made: Resource = {"operator": self.chance.choice(["Exists", "Equal"])}
        if made["operator"] == "Equal" or self.rarely(0.8):
            made["key"] = self.chance.choice(TAINTS)
        if made["operator"] == "Equal":
            made["value"] = self.chance.choice(["", "yes", "5"])
        if self.rarely(0.6):
            made["effect"] = self.chance.choice(EFFECTS)
        return made

    def _term(self, name: str) -> Resource:
        made: Resource = {}
        if self.rarely(0.8):
            made["matchExpressions"] = [self._expression() for _ in range(self.chance.choice([1, 1, 2]))]
        if self.rarely(0.35):
            field = {"key": "metadata.name", "operator": self.chance.choice(["In", "NotIn"])}
            values = [self.chance.choice([name, name, name, "somewhere-else"])]
            made["matchFields"] = [{**field, "values": values}]
            if self.rarely(0.2):
                made["matchFields"].append({**field, "operator": "In", "values": ["somewhere-else"]})
        return made or {"matchExpressions": [self._expression()]}

    def _expression(self) -> Resource:
        operator = self.chance.choice(["In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if operator in ("Gt", "Lt"):
            return {"key": "rank", "operator": operator, "values": [self.chance.choice(["4", "5", "7", "010", "x"])]}
        key = self.chance.choice(["zone", "zone", "disk", "none"])
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        values = self.chance.sample([*ZONES, "ssd", ""], self.chance.choice([1, 2, 3]))
        return {"key": key, "operator": operator, "values": values}
