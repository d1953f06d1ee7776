"""Types of apps/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Any, Literal, Required, TypedDict

from .core_v1 import PersistentVolumeClaim, PersistentVolumeClaimTemplate, PodTemplateSpec
from .meta_v1 import LabelSelector, NamedMeta, ObjectMeta

class ControllerRevision(TypedDict, total=False):
    "ControllerRevision implements an immutable snapshot of state data."
    apiVersion: Required[Literal["apps/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    data: dict[str, Any]
    "Data is the serialized representation of the state."
    kind: Required[Literal["ControllerRevision"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    revision: int
    "Revision indicates the revision of the state represented by Data."


class DaemonSet(TypedDict, total=False):
    "DaemonSet represents the configuration of a daemon set."
    apiVersion: Required[Literal["apps/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["DaemonSet"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: DaemonSetSpec
    "The desired behavior of this daemon set."
    status: DaemonSetStatus
    "The current status of this daemon set."


class DaemonSetCondition(TypedDict, total=False):
    "DaemonSetCondition describes the state of a DaemonSet at a certain point."
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    message: str
    "A human readable message indicating details about the transition."
    reason: str
    "The reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of DaemonSet condition."


class DaemonSetSpec(TypedDict, total=False):
    "DaemonSetSpec is the specification of a daemon set."
    minReadySeconds: int
    "The minimum number of seconds for which a newly created DaemonSet pod should be ready without any of its container crashing, for it to be considered available."
    revisionHistoryLimit: int
    "The number of old history to retain to allow rollback."
    selector: LabelSelector
    "A label query over pods that are managed by the daemon set."
    template: PodTemplateSpec
    "An object that describes the pod that will be created."
    updateStrategy: DaemonSetUpdateStrategy
    "An update strategy to replace existing DaemonSet pods with new pods."


class DaemonSetStatus(TypedDict, total=False):
    "DaemonSetStatus represents the current status of a daemon set."
    collisionCount: int
    "Count of hash collisions for the DaemonSet."
    conditions: list[DaemonSetCondition]
    "Represents the latest available observations of a DaemonSet's current state."
    currentNumberScheduled: int
    "The number of nodes that are running at least 1 daemon pod and are supposed to run the daemon pod."
    desiredNumberScheduled: int
    "The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon pod)."
    numberAvailable: int
    "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available (ready for at least spec.minReadySeconds)"
    numberMisscheduled: int
    "The number of nodes that are running the daemon pod, but are not supposed to run the daemon pod."
    numberReady: int
    "numberReady is the number of nodes that should be running the daemon pod and have one or more of the daemon pod running with a Ready Condition."
    numberUnavailable: int
    "The number of nodes that should be running the daemon pod and have none of the daemon pod running and available (ready for at least spec.minReadySeconds)"
    observedGeneration: int
    "The most recent generation observed by the daemon set controller."
    updatedNumberScheduled: int
    "The total number of nodes that are running updated daemon pod"


class DaemonSetUpdateStrategy(TypedDict, total=False):
    "DaemonSetUpdateStrategy is a struct used to control the update strategy for a DaemonSet."
    rollingUpdate: RollingUpdateDaemonSet
    "Rolling update config params."
    type: str
    "Type of daemon set update."


class Deployment(TypedDict, total=False):
    "Deployment enables declarative updates for Pods and ReplicaSets."
    apiVersion: Required[Literal["apps/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Deployment"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: DeploymentSpec
    "Specification of the desired behavior of the Deployment."
    status: DeploymentStatus
    "Most recently observed status of the Deployment."


class DeploymentCondition(TypedDict, total=False):
    "DeploymentCondition describes the state of a deployment at a certain point."
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    lastUpdateTime: str
    "The last time this condition was updated."
    message: str
    "A human readable message indicating details about the transition."
    reason: str
    "The reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of deployment condition."


class DeploymentSpec(TypedDict, total=False):
    "DeploymentSpec is the specification of the desired behavior of the Deployment."
    minReadySeconds: int
    "Minimum number of seconds for which a newly created pod should be ready without any of its container crashing, for it to be considered available."
    paused: bool
    "Indicates that the deployment is paused."
    progressDeadlineSeconds: int
    "The maximum time in seconds for a deployment to make progress before it is considered to be failed."
    replicas: int
    "Number of desired pods."
    revisionHistoryLimit: int
    "The number of old ReplicaSets to retain to allow rollback."
    selector: LabelSelector
    "Label selector for pods."
    strategy: DeploymentStrategy
    "The deployment strategy to use to replace existing pods with new ones."
    template: PodTemplateSpec
    "Template describes the pods that will be created."


class DeploymentStatus(TypedDict, total=False):
    "DeploymentStatus is the most recently observed status of the Deployment."
    availableReplicas: int
    "Total number of available non-terminating pods (ready for at least minReadySeconds) targeted by this deployment."
    collisionCount: int
    "Count of hash collisions for the Deployment."
    conditions: list[DeploymentCondition]
    "Represents the latest available observations of a deployment's current state."
    observedGeneration: int
    "The generation observed by the deployment controller."
    readyReplicas: int
    "Total number of non-terminating pods targeted by this Deployment with a Ready Condition."
    replicas: int
    "Total number of non-terminating pods targeted by this deployment (their labels match the selector)."
    terminatingReplicas: int
    "Total number of terminating pods targeted by this deployment."
    unavailableReplicas: int
    "Total number of unavailable pods targeted by this deployment."
    updatedReplicas: int
    "Total number of non-terminating pods targeted by this deployment that have the desired template spec."


class DeploymentStrategy(TypedDict, total=False):
    "DeploymentStrategy describes how to replace existing pods with new ones."
    rollingUpdate: RollingUpdateDeployment
    "Rolling update config params."
    type: str
    "Type of deployment."


class ReplicaSet(TypedDict, total=False):
    "ReplicaSet ensures that a specified number of pod replicas are running at any given time."
    apiVersion: Required[Literal["apps/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ReplicaSet"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "If the Labels of a ReplicaSet are empty, they are defaulted to be the same as the Pod(s) that the ReplicaSet manages."
    spec: ReplicaSetSpec
    "Spec defines the specification of the desired behavior of the ReplicaSet."
    status: ReplicaSetStatus
    "Status is the most recently observed status of the ReplicaSet."


class ReplicaSetCondition(TypedDict, total=False):
    "ReplicaSetCondition describes the state of a replica set at a certain point."
    lastTransitionTime: str
    "The last time the condition transitioned from one status to another."
    message: str
    "A human readable message indicating details about the transition."
    reason: str
    "The reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of replica set condition."


class ReplicaSetSpec(TypedDict, total=False):
    "ReplicaSetSpec is the specification of a ReplicaSet."
    minReadySeconds: int
    "Minimum number of seconds for which a newly created pod should be ready without any of its container crashing, for it to be considered available."
    replicas: int
    "Replicas is the number of desired pods."
    selector: LabelSelector
    "Selector is a label query over pods that should match the replica count."
    template: PodTemplateSpec
    "Template is the object that describes the pod that will be created if insufficient replicas are detected."


class ReplicaSetStatus(TypedDict, total=False):
    "ReplicaSetStatus represents the current status of a ReplicaSet."
    availableReplicas: int
    "The number of available non-terminating pods (ready for at least minReadySeconds) for this replica set."
    conditions: list[ReplicaSetCondition]
    "Represents the latest available observations of a replica set's current state."
    fullyLabeledReplicas: int
    "The number of non-terminating pods that have labels matching the labels of the pod template of the replicaset."
    observedGeneration: int
    "ObservedGeneration reflects the generation of the most recently observed ReplicaSet."
    readyReplicas: int
    "The number of non-terminating pods targeted by this ReplicaSet with a Ready Condition."
    replicas: int
    "Replicas is the most recently observed number of non-terminating pods."
    terminatingReplicas: int
    "The number of terminating pods for this replica set."


class RollingUpdateDaemonSet(TypedDict, total=False):
    "Spec to control the desired behavior of daemon set rolling update."
    maxSurge: int | str
    "The maximum number of nodes with an existing available DaemonSet pod that can have an updated DaemonSet pod during during an update."
    maxUnavailable: int | str
    "The maximum number of DaemonSet pods that can be unavailable during the update."


class RollingUpdateDeployment(TypedDict, total=False):
    "Spec to control the desired behavior of rolling update."
    maxSurge: int | str
    "The maximum number of pods that can be scheduled above the desired number of pods."
    maxUnavailable: int | str
    "The maximum number of pods that can be unavailable during the update."


class RollingUpdateStatefulSetStrategy(TypedDict, total=False):
    "RollingUpdateStatefulSetStrategy is used to communicate parameter for RollingUpdateStatefulSetStrategyType."
    maxUnavailable: int | str
    "The maximum number of pods that can be unavailable during the update."
    partition: int
    "Partition indicates the ordinal at which the StatefulSet should be partitioned for updates."


class StatefulSet(TypedDict, total=False):
    "StatefulSet represents a set of pods with consistent identities."
    apiVersion: Required[Literal["apps/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["StatefulSet"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: StatefulSetSpec
    "Spec defines the desired identities of pods in this set."
    status: StatefulSetStatus
    "Status is the current status of Pods in this StatefulSet."


class StatefulSetCondition(TypedDict, total=False):
    "StatefulSetCondition describes the state of a statefulset at a certain point."
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    message: str
    "A human readable message indicating details about the transition."
    reason: str
    "The reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of statefulset condition."


class StatefulSetOrdinals(TypedDict, total=False):
    "StatefulSetOrdinals describes the policy used for replica ordinal assignment in this StatefulSet."
    start: int
    "start is the number representing the first replica's index."


class StatefulSetPersistentVolumeClaimRetentionPolicy(TypedDict, total=False):
    "StatefulSetPersistentVolumeClaimRetentionPolicy describes the policy used for PVCs created from the StatefulSet VolumeClaimTemplates."
    whenDeleted: str
    "WhenDeleted specifies what happens to PVCs created from StatefulSet VolumeClaimTemplates when the StatefulSet is deleted."
    whenScaled: str
    "WhenScaled specifies what happens to PVCs created from StatefulSet VolumeClaimTemplates when the StatefulSet is scaled down."


class StatefulSetSpec(TypedDict, total=False):
    "A StatefulSetSpec is the specification of a StatefulSet."
    minReadySeconds: int
    "Minimum number of seconds for which a newly created pod should be ready without any of its container crashing for it to be considered available."
    ordinals: StatefulSetOrdinals
    "ordinals controls the numbering of replica indices in a StatefulSet."
    persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicy
    "persistentVolumeClaimRetentionPolicy describes the lifecycle of persistent volume claims created from volumeClaimTemplates."
    podManagementPolicy: str
    "podManagementPolicy controls how pods are created during initial scale up, when replacing pods on nodes, or when scaling down."
    replicas: int
    "replicas is the desired number of replicas of the given Template."
    revisionHistoryLimit: int
    "revisionHistoryLimit is the maximum number of revisions that will be maintained in the StatefulSet's revision history."
    selector: LabelSelector
    "selector is a label query over pods that should match the replica count."
    serviceName: str
    "serviceName is the name of the service that governs this StatefulSet."
    template: PodTemplateSpec
    "template is the object that describes the pod that will be created if insufficient replicas are detected."
    updateStrategy: StatefulSetUpdateStrategy
    "updateStrategy indicates the StatefulSetUpdateStrategy that will be employed to update Pods in the StatefulSet when a revision is made to Template."
    volumeClaimTemplates: list[PersistentVolumeClaim | PersistentVolumeClaimTemplate]
    "volumeClaimTemplates is a list of claims that pods are allowed to reference."


class StatefulSetStatus(TypedDict, total=False):
    "StatefulSetStatus represents the current state of a StatefulSet."
    availableReplicas: int
    "Total number of available pods (ready for at least minReadySeconds) targeted by this statefulset."
    collisionCount: int
    "collisionCount is the count of hash collisions for the StatefulSet."
    conditions: list[StatefulSetCondition]
    "Represents the latest available observations of a statefulset's current state."
    currentReplicas: int
    "currentReplicas is the number of Pods created by the StatefulSet controller from the StatefulSet version indicated by currentRevision."
    currentRevision: str
    "currentRevision, if not empty, indicates the version of the StatefulSet used to generate Pods in the sequence [0,currentReplicas)."
    observedGeneration: int
    "observedGeneration is the most recent generation observed for this StatefulSet."
    readyReplicas: int
    "readyReplicas is the number of pods created for this StatefulSet with a Ready Condition."
    replicas: int
    "replicas is the number of Pods created by the StatefulSet controller."
    updateRevision: str
    "updateRevision, if not empty, indicates the version of the StatefulSet used to generate Pods in the sequence [replicas-updatedReplicas,replicas)"
    updatedReplicas: int
    "updatedReplicas is the number of Pods created by the StatefulSet controller from the StatefulSet version indicated by updateRevision."


class StatefulSetUpdateStrategy(TypedDict, total=False):
    "StatefulSetUpdateStrategy indicates the strategy that the StatefulSet controller will use to perform updates."
    rollingUpdate: RollingUpdateStatefulSetStrategy
    "RollingUpdate is used to communicate parameters when Type is RollingUpdateStatefulSetStrategyType."
    type: str
    "Type indicates the type of the StatefulSetUpdateStrategy."
