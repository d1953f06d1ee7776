"""Types of policy/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import Condition, DeleteOptions, LabelSelector, NamedMeta, ObjectMeta

class Eviction(TypedDict, total=False):
    "Eviction evicts a pod from its node subject to certain policies and safety constraints."
    apiVersion: Required[Literal["policy/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    deleteOptions: DeleteOptions
    "DeleteOptions may be provided"
    kind: Required[Literal["Eviction"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "ObjectMeta describes the pod that is being evicted."


class PodDisruptionBudget(TypedDict, total=False):
    "PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods"
    apiVersion: Required[Literal["policy/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["PodDisruptionBudget"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: PodDisruptionBudgetSpec
    "Specification of the desired behavior of the PodDisruptionBudget."
    status: PodDisruptionBudgetStatus
    "Most recently observed status of the PodDisruptionBudget."


class PodDisruptionBudgetSpec(TypedDict, total=False):
    "PodDisruptionBudgetSpec is a description of a PodDisruptionBudget."
    maxUnavailable: int | str
    "An eviction is allowed if at most \"maxUnavailable\" pods selected by \"selector\" are unavailable after the eviction, i.e."
    minAvailable: int | str
    "An eviction is allowed if at least \"minAvailable\" pods selected by \"selector\" will still be available after the eviction, i.e."
    selector: LabelSelector
    "Label query over pods whose evictions are managed by the disruption budget."
    unhealthyPodEvictionPolicy: str
    "UnhealthyPodEvictionPolicy defines the criteria for when unhealthy pods should be considered for eviction."


class PodDisruptionBudgetStatus(TypedDict, total=False):
    "PodDisruptionBudgetStatus represents information about the status of a PodDisruptionBudget."
    conditions: list[Condition]
    "Conditions contain conditions for PDB. The disruption controller sets the DisruptionAllowed condition."
    currentHealthy: int
    "current number of healthy pods"
    desiredHealthy: int
    "minimum desired number of healthy pods"
    disruptedPods: dict[str, str]
    "DisruptedPods contains information about pods whose eviction was processed by the API server eviction subresource handler but has not yet been observed by the PodDisruptionBudget controller."
    disruptionsAllowed: int
    "Number of pod disruptions that are currently allowed."
    expectedPods: int
    "total number of pods counted by this disruption budget"
    observedGeneration: int
    "Most recent generation observed when updating this PDB status."
