"""Types of node/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import Toleration
from .meta_v1 import NamedMeta, ObjectMeta

class Overhead(TypedDict, total=False):
    "Overhead structure represents the resource overhead associated with running a pod."
    podFixed: dict[str, str | float]
    "podFixed represents the fixed resource overhead associated with running a pod."


class RuntimeClass(TypedDict, total=False):
    "RuntimeClass defines a class of container runtime supported in the cluster."
    apiVersion: Required[Literal["node.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    handler: str
    "handler specifies the underlying runtime and configuration that the CRI implementation will use to handle pods of this class."
    kind: Required[Literal["RuntimeClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    overhead: Overhead
    "overhead represents the resource overhead associated with running a pod for a given RuntimeClass."
    scheduling: Scheduling
    "scheduling holds the scheduling constraints to ensure that pods running with this RuntimeClass are scheduled to nodes that support it."


class Scheduling(TypedDict, total=False):
    "Scheduling specifies the scheduling constraints for nodes supporting a RuntimeClass."
    nodeSelector: dict[str, str]
    "nodeSelector lists labels that must be present on nodes that support this RuntimeClass."
    tolerations: list[Toleration]
    "tolerations are appended (excluding duplicates) to pods running with this RuntimeClass during admission, effectively unioning the set of nodes tolerated by the pod and the RuntimeClass."
