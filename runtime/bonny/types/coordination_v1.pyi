"""Types of coordination/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class Lease(TypedDict, total=False):
    "Lease defines a lease concept."
    apiVersion: Required[Literal["coordination.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Lease"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    spec: LeaseSpec
    "spec contains the specification of the Lease."


class LeaseSpec(TypedDict, total=False):
    "LeaseSpec is a specification of a Lease."
    acquireTime: str
    "acquireTime is a time when the current lease was acquired."
    holderIdentity: str
    "holderIdentity contains the identity of the holder of a current lease."
    leaseDurationSeconds: int
    "leaseDurationSeconds is a duration that candidates for a lease need to wait to force acquire it."
    leaseTransitions: int
    "leaseTransitions is the number of transitions of a lease between holders."
    preferredHolder: str
    "PreferredHolder signals to a lease holder that the lease has a more optimal holder and should be given up."
    renewTime: str
    "renewTime is a time when the current holder of a lease has last updated the lease."
    strategy: str
    "Strategy indicates the strategy for picking the leader for coordinated leader election."
