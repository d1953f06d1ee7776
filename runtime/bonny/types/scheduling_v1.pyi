"""Types of scheduling/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class PriorityClass(TypedDict, total=False):
    "PriorityClass defines mapping from a priority class name to the priority integer value."
    apiVersion: Required[Literal["scheduling.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    description: str
    "description is an arbitrary string that usually provides guidelines on when this priority class should be used."
    globalDefault: bool
    "globalDefault specifies whether this PriorityClass should be considered as the default priority for pods that do not have any priority class."
    kind: Required[Literal["PriorityClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    preemptionPolicy: str
    "preemptionPolicy is the Policy for preempting pods with lower priority."
    value: int
    "value represents the integer value of this priority class."
