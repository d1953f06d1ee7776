"""Types of autoscaling/v2, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import LabelSelector, NamedMeta, ObjectMeta

class ContainerResourceMetricSource(TypedDict, total=False):
    "ContainerResourceMetricSource indicates how to scale on a resource metric known to Kubernetes, as specified in requests and limits, describing each pod in the current scale target (e.g."
    container: str
    "container is the name of the container in the pods of the scaling target"
    name: str
    "name is the name of the resource in question."
    target: MetricTarget
    "target specifies the target value for the given metric"


class ContainerResourceMetricStatus(TypedDict, total=False):
    "ContainerResourceMetricStatus indicates the current value of a resource metric known to Kubernetes, as specified in requests and limits, describing a single container in each pod in the current scale target (e.g."
    container: str
    "container is the name of the container in the pods of the scaling target"
    current: MetricValueStatus
    "current contains the current value for the given metric"
    name: str
    "name is the name of the resource in question."


class CrossVersionObjectReference(TypedDict, total=False):
    "CrossVersionObjectReference contains enough information to let you identify the referred resource."
    apiVersion: str
    "apiVersion is the API version of the referent"
    kind: str
    "kind is the kind of the referent; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
    name: str
    "name is the name of the referent; More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#names"


class ExternalMetricSource(TypedDict, total=False):
    "ExternalMetricSource indicates how to scale on a metric not associated with any Kubernetes object (for example length of queue in cloud messaging service, or QPS from loadbalancer running outside of cluster)."
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"
    target: MetricTarget
    "target specifies the target value for the given metric"


class ExternalMetricStatus(TypedDict, total=False):
    "ExternalMetricStatus indicates the current value of a global metric not associated with any Kubernetes object."
    current: MetricValueStatus
    "current contains the current value for the given metric"
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"


class HPAScalingPolicy(TypedDict, total=False):
    "HPAScalingPolicy is a single policy which must hold true for a specified past interval."
    periodSeconds: int
    "periodSeconds specifies the window of time for which the policy should hold true."
    type: str
    "type is used to specify the scaling policy."
    value: int
    "value contains the amount of change which is permitted by the policy."


class HPAScalingRules(TypedDict, total=False):
    "HPAScalingRules configures the scaling behavior for one direction via scaling Policy Rules and a configurable metric tolerance."
    policies: list[HPAScalingPolicy]
    "policies is a list of potential scaling polices which can be used during scaling."
    selectPolicy: str
    "selectPolicy is used to specify which policy should be used."
    stabilizationWindowSeconds: int
    "stabilizationWindowSeconds is the number of seconds for which past recommendations should be considered while scaling up or scaling down."
    tolerance: str | float
    "tolerance is the tolerance on the ratio between the current and desired metric value under which no updates are made to the desired number of replicas (e.g."


class HorizontalPodAutoscaler(TypedDict, total=False):
    "HorizontalPodAutoscaler is the configuration for a horizontal pod autoscaler, which automatically manages the replica count of any resource implementing the scale subresource based on the metrics specified."
    apiVersion: Required[Literal["autoscaling/v2"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["HorizontalPodAutoscaler"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata."
    spec: HorizontalPodAutoscalerSpec
    "spec is the specification for the behaviour of the autoscaler."
    status: HorizontalPodAutoscalerStatus
    "status is the current information about the autoscaler."


class HorizontalPodAutoscalerBehavior(TypedDict, total=False):
    "HorizontalPodAutoscalerBehavior configures the scaling behavior of the target in both Up and Down directions (scaleUp and scaleDown fields respectively)."
    scaleDown: HPAScalingRules
    "scaleDown is scaling policy for scaling Down."
    scaleUp: HPAScalingRules
    "scaleUp is scaling policy for scaling Up."


class HorizontalPodAutoscalerCondition(TypedDict, total=False):
    "HorizontalPodAutoscalerCondition describes the state of a HorizontalPodAutoscaler at a certain point."
    lastTransitionTime: str
    "lastTransitionTime is the last time the condition transitioned from one status to another"
    message: str
    "message is a human-readable explanation containing details about the transition"
    reason: str
    "reason is the reason for the condition's last transition."
    status: str
    "status is the status of the condition (True, False, Unknown)"
    type: str
    "type describes the current condition"


class HorizontalPodAutoscalerSpec(TypedDict, total=False):
    "HorizontalPodAutoscalerSpec describes the desired functionality of the HorizontalPodAutoscaler."
    behavior: HorizontalPodAutoscalerBehavior
    "behavior configures the scaling behavior of the target in both Up and Down directions (scaleUp and scaleDown fields respectively)."
    maxReplicas: int
    "maxReplicas is the upper limit for the number of replicas to which the autoscaler can scale up."
    metrics: list[MetricSpec]
    "metrics contains the specifications for which to use to calculate the desired replica count (the maximum replica count across all metrics will be used)."
    minReplicas: int
    "minReplicas is the lower limit for the number of replicas to which the autoscaler can scale down."
    scaleTargetRef: CrossVersionObjectReference
    "scaleTargetRef points to the target resource to scale, and is used to the pods for which metrics should be collected, as well as to actually change the replica count."


class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    "HorizontalPodAutoscalerStatus describes the current status of a horizontal pod autoscaler."
    conditions: list[HorizontalPodAutoscalerCondition]
    "conditions is the set of conditions required for this autoscaler to scale its target, and indicates whether or not those conditions are met."
    currentMetrics: list[MetricStatus]
    "currentMetrics is the last read state of the metrics used by this autoscaler."
    currentReplicas: int
    "currentReplicas is current number of replicas of pods managed by this autoscaler, as last seen by the autoscaler."
    desiredReplicas: int
    "desiredReplicas is the desired number of replicas of pods managed by this autoscaler, as last calculated by the autoscaler."
    lastScaleTime: str
    "lastScaleTime is the last time the HorizontalPodAutoscaler scaled the number of pods, used by the autoscaler to control how often the number of pods is changed."
    observedGeneration: int
    "observedGeneration is the most recent generation observed by this autoscaler."


class MetricIdentifier(TypedDict, total=False):
    "MetricIdentifier defines the name and optionally selector for a metric"
    name: str
    "name is the name of the given metric"
    selector: LabelSelector
    "selector is the string-encoded form of a standard kubernetes label selector for the given metric When set, it is passed as an additional parameter to the metrics server for more specific metrics scoping."


class MetricSpec(TypedDict, total=False):
    "MetricSpec specifies how to scale based on a single metric (only `type` and one other matching field should be set at once)."
    containerResource: ContainerResourceMetricSource
    "containerResource refers to a resource metric (such as those specified in requests and limits) known to Kubernetes describing a single container in each pod of the current scale target (e.g."
    external: ExternalMetricSource
    "external refers to a global metric that is not associated with any Kubernetes object."
    object: ObjectMetricSource
    "object refers to a metric describing a single kubernetes object (for example, hits-per-second on an Ingress object)."
    pods: PodsMetricSource
    "pods refers to a metric describing each pod in the current scale target (for example, transactions-processed-per-second)."
    resource: ResourceMetricSource
    "resource refers to a resource metric (such as those specified in requests and limits) known to Kubernetes describing each pod in the current scale target (e.g."
    type: str
    "type is the type of metric source."


class MetricStatus(TypedDict, total=False):
    "MetricStatus describes the last-read state of a single metric."
    containerResource: ContainerResourceMetricStatus
    "container resource refers to a resource metric (such as those specified in requests and limits) known to Kubernetes describing a single container in each pod in the current scale target (e.g."
    external: ExternalMetricStatus
    "external refers to a global metric that is not associated with any Kubernetes object."
    object: ObjectMetricStatus
    "object refers to a metric describing a single kubernetes object (for example, hits-per-second on an Ingress object)."
    pods: PodsMetricStatus
    "pods refers to a metric describing each pod in the current scale target (for example, transactions-processed-per-second)."
    resource: ResourceMetricStatus
    "resource refers to a resource metric (such as those specified in requests and limits) known to Kubernetes describing each pod in the current scale target (e.g."
    type: str
    "type is the type of metric source."


class MetricTarget(TypedDict, total=False):
    "MetricTarget defines the target value, average value, or average utilization of a specific metric"
    averageUtilization: int
    "averageUtilization is the target value of the average of the resource metric across all relevant pods, represented as a percentage of the requested value of the resource for the pods."
    averageValue: str | float
    "averageValue is the target value of the average of the metric across all relevant pods (as a quantity)"
    type: str
    "type represents whether the metric type is Utilization, Value, or AverageValue"
    value: str | float
    "value is the target value of the metric (as a quantity)."


class MetricValueStatus(TypedDict, total=False):
    "MetricValueStatus holds the current value for a metric"
    averageUtilization: int
    "currentAverageUtilization is the current value of the average of the resource metric across all relevant pods, represented as a percentage of the requested value of the resource for the pods."
    averageValue: str | float
    "averageValue is the current value of the average of the metric across all relevant pods (as a quantity)"
    value: str | float
    "value is the current value of the metric (as a quantity)."


class ObjectMetricSource(TypedDict, total=False):
    "ObjectMetricSource indicates how to scale on a metric describing a kubernetes object (for example, hits-per-second on an Ingress object)."
    describedObject: CrossVersionObjectReference
    "describedObject specifies the descriptions of a object,such as kind,name apiVersion"
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"
    target: MetricTarget
    "target specifies the target value for the given metric"


class ObjectMetricStatus(TypedDict, total=False):
    "ObjectMetricStatus indicates the current value of a metric describing a kubernetes object (for example, hits-per-second on an Ingress object)."
    current: MetricValueStatus
    "current contains the current value for the given metric"
    describedObject: CrossVersionObjectReference
    "DescribedObject specifies the descriptions of a object,such as kind,name apiVersion"
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"


class PodsMetricSource(TypedDict, total=False):
    "PodsMetricSource indicates how to scale on a metric describing each pod in the current scale target (for example, transactions-processed-per-second)."
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"
    target: MetricTarget
    "target specifies the target value for the given metric"


class PodsMetricStatus(TypedDict, total=False):
    "PodsMetricStatus indicates the current value of a metric describing each pod in the current scale target (for example, transactions-processed-per-second)."
    current: MetricValueStatus
    "current contains the current value for the given metric"
    metric: MetricIdentifier
    "metric identifies the target metric by name and selector"


class ResourceMetricSource(TypedDict, total=False):
    "ResourceMetricSource indicates how to scale on a resource metric known to Kubernetes, as specified in requests and limits, describing each pod in the current scale target (e.g."
    name: str
    "name is the name of the resource in question."
    target: MetricTarget
    "target specifies the target value for the given metric"


class ResourceMetricStatus(TypedDict, total=False):
    "ResourceMetricStatus indicates the current value of a resource metric known to Kubernetes, as specified in requests and limits, describing each pod in the current scale target (e.g."
    current: MetricValueStatus
    "current contains the current value for the given metric"
    name: str
    "name is the name of the resource in question."
