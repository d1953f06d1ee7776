"""Types of autoscaling/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class CrossVersionObjectReference(TypedDict, total=False):
    "CrossVersionObjectReference contains enough information to let you identify the referred resource."
    apiVersion: str
    "apiVersion is the API version of the referent"
    kind: str
    "kind is the kind of the referent; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
    name: str
    "name is the name of the referent; More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names"


class HorizontalPodAutoscaler(TypedDict, total=False):
    "configuration of a horizontal pod autoscaler."
    apiVersion: Required[Literal["autoscaling/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["HorizontalPodAutoscaler"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata."
    spec: HorizontalPodAutoscalerSpec
    "spec defines the behaviour of autoscaler."
    status: HorizontalPodAutoscalerStatus
    "status is the current information about the autoscaler."


class HorizontalPodAutoscalerSpec(TypedDict, total=False):
    "specification of a horizontal pod autoscaler."
    maxReplicas: int
    "maxReplicas is the upper limit for the number of pods that can be set by the autoscaler; cannot be smaller than MinReplicas."
    minReplicas: int
    "minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down."
    scaleTargetRef: CrossVersionObjectReference
    "reference to scaled resource; horizontal pod autoscaler will learn the current resource consumption and will set the desired number of pods by using its Scale subresource."
    targetCPUUtilizationPercentage: int
    "targetCPUUtilizationPercentage is the target average CPU utilization (represented as a percentage of requested CPU) over all the pods; if not specified the default autoscaling policy will be used."


class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    "current status of a horizontal pod autoscaler"
    currentCPUUtilizationPercentage: int
    "currentCPUUtilizationPercentage is the current average CPU utilization over all pods, represented as a percentage of requested CPU, e.g."
    currentReplicas: int
    "currentReplicas is the current number of replicas of pods managed by this autoscaler."
    desiredReplicas: int
    "desiredReplicas is the  desired number of replicas of pods managed by this autoscaler."
    lastScaleTime: str
    "lastScaleTime is the last time the HorizontalPodAutoscaler scaled the number of pods; used by the autoscaler to control how often the number of pods is changed."
    observedGeneration: int
    "observedGeneration is the most recent generation observed by this autoscaler."


class Scale(TypedDict, total=False):
    "Scale represents a scaling request for a resource."
    apiVersion: Required[Literal["autoscaling/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Scale"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    spec: ScaleSpec
    "spec defines the behavior of the scale."
    status: ScaleStatus
    "status is the current status of the scale."


class ScaleSpec(TypedDict, total=False):
    "ScaleSpec describes the attributes of a scale subresource."
    replicas: int
    "replicas is the desired number of instances for the scaled object."


class ScaleStatus(TypedDict, total=False):
    "ScaleStatus represents the current status of a scale subresource."
    replicas: int
    "replicas is the actual number of observed instances of the scaled object."
    selector: str
    "selector is the label query over pods that should match the replicas count."
