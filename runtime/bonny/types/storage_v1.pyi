"""Types of storage/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import PersistentVolumeSpec, TopologySelectorTerm
from .meta_v1 import LabelSelector, NamedMeta, ObjectMeta

class CSIDriver(TypedDict, total=False):
    "CSIDriver captures information about a Container Storage Interface (CSI) volume driver deployed on the cluster."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["CSIDriver"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata."
    spec: CSIDriverSpec
    "spec represents the specification of the CSI Driver."


class CSIDriverSpec(TypedDict, total=False):
    "CSIDriverSpec is the specification of a CSIDriver."
    attachRequired: bool
    "attachRequired indicates this CSI volume driver requires an attach operation (because it implements the CSI ControllerPublishVolume() method), and that the Kubernetes attach detach controller should call the attach volume interface which checks the volumeattachment status and waits until the volume is attached before proceeding to mounting."
    fsGroupPolicy: str
    "fsGroupPolicy defines if the underlying volume supports changing ownership and permission of the volume before being mounted."
    nodeAllocatableUpdatePeriodSeconds: int
    "nodeAllocatableUpdatePeriodSeconds specifies the interval between periodic updates of the CSINode allocatable capacity for this driver."
    podInfoOnMount: bool
    "podInfoOnMount indicates this CSI volume driver requires additional pod information (like podName, podUID, etc.) during mount operations, if set to true."
    preventPodSchedulingIfMissing: bool
    "PreventPodSchedulingIfMissing indicates that the CSI driver wants to prevent pod scheduling if the CSI driver on the node is missing."
    requiresRepublish: bool
    "requiresRepublish indicates the CSI driver wants `NodePublishVolume` being periodically called to reflect any possible change in the mounted volume."
    seLinuxMount: bool
    "seLinuxMount specifies if the CSI driver supports \"-o context\" mount option."
    serviceAccountTokenInSecrets: bool
    "serviceAccountTokenInSecrets is an opt-in for CSI drivers to indicate that service account tokens should be passed via the Secrets field in NodePublishVolumeRequest instead of the VolumeContext field."
    storageCapacity: bool
    "storageCapacity indicates that the CSI volume driver wants pod scheduling to consider the storage capacity that the driver deployment will report by creating CSIStorageCapacity objects with capacity information, if set to true."
    tokenRequests: list[TokenRequest]
    "tokenRequests indicates the CSI driver needs pods' service account tokens it is mounting volume for to do necessary authentication."
    volumeLifecycleModes: list[str]
    "volumeLifecycleModes defines what kind of volumes this CSI volume driver supports."


class CSINode(TypedDict, total=False):
    "CSINode holds information about all CSI drivers installed on a node."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["CSINode"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: CSINodeSpec
    "spec is the specification of CSINode"


class CSINodeDriver(TypedDict, total=False):
    "CSINodeDriver holds information about the specification of one CSI driver installed on a node"
    allocatable: VolumeNodeResources
    "allocatable represents the volume resources of a node that are available for scheduling."
    name: str
    "name represents the name of the CSI driver that this object refers to."
    nodeID: str
    "nodeID of the node from the driver point of view."
    topologyKeys: list[str]
    "topologyKeys is the list of keys supported by the driver."


class CSINodeSpec(TypedDict, total=False):
    "CSINodeSpec holds information about the specification of all CSI drivers installed on a node"
    drivers: list[CSINodeDriver]
    "drivers is a list of information of all CSI Drivers existing on a node."


class CSIStorageCapacity(TypedDict, total=False):
    "CSIStorageCapacity stores the result of one CSI GetCapacity call."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    capacity: str | float
    "capacity is the value reported by the CSI driver in its GetCapacityResponse for a GetCapacityRequest with topology and parameters that match the previous fields."
    kind: Required[Literal["CSIStorageCapacity"]]
    "Kind is a string value representing the REST resource this object represents."
    maximumVolumeSize: str | float
    "maximumVolumeSize is the value reported by the CSI driver in its GetCapacityResponse for a GetCapacityRequest with topology and parameters that match the previous fields."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    nodeTopology: LabelSelector
    "nodeTopology defines which nodes have access to the storage for which capacity was reported."
    storageClassName: str
    "storageClassName represents the name of the StorageClass that the reported capacity applies to."


class StorageClass(TypedDict, total=False):
    "StorageClass describes the parameters for a class of storage for which PersistentVolumes can be dynamically provisioned."
    allowVolumeExpansion: bool
    "allowVolumeExpansion shows whether the storage class allow volume expand."
    allowedTopologies: list[TopologySelectorTerm]
    "allowedTopologies restrict the node topologies where volumes can be dynamically provisioned."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["StorageClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    mountOptions: list[str]
    "mountOptions controls the mountOptions for dynamically provisioned PersistentVolumes of this storage class."
    parameters: dict[str, str]
    "parameters holds the parameters for the provisioner that should create volumes of this storage class."
    provisioner: str
    "provisioner indicates the type of the provisioner."
    reclaimPolicy: str
    "reclaimPolicy controls the reclaimPolicy for dynamically provisioned PersistentVolumes of this storage class."
    volumeBindingMode: str
    "volumeBindingMode indicates how PersistentVolumeClaims should be provisioned and bound."


class TokenRequest(TypedDict, total=False):
    "TokenRequest contains parameters of a service account token."
    audience: str
    "audience is the intended audience of the token in \"TokenRequestSpec\"."
    expirationSeconds: int
    "expirationSeconds is the duration of validity of the token in \"TokenRequestSpec\"."


class VolumeAttachment(TypedDict, total=False):
    "VolumeAttachment captures the intent to attach or detach the specified volume to/from the specified node."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["VolumeAttachment"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata."
    spec: VolumeAttachmentSpec
    "spec represents specification of the desired attach/detach volume behavior."
    status: VolumeAttachmentStatus
    "status represents status of the VolumeAttachment request."


class VolumeAttachmentSource(TypedDict, total=False):
    "VolumeAttachmentSource represents a volume that should be attached."
    inlineVolumeSpec: PersistentVolumeSpec
    "inlineVolumeSpec contains all the information necessary to attach a persistent volume defined by a pod's inline VolumeSource."
    persistentVolumeName: str
    "persistentVolumeName represents the name of the persistent volume to attach."


class VolumeAttachmentSpec(TypedDict, total=False):
    "VolumeAttachmentSpec is the specification of a VolumeAttachment request."
    attacher: str
    "attacher indicates the name of the volume driver that MUST handle this request."
    nodeName: str
    "nodeName represents the node that the volume should be attached to."
    source: VolumeAttachmentSource
    "source represents the volume that should be attached."


class VolumeAttachmentStatus(TypedDict, total=False):
    "VolumeAttachmentStatus is the status of a VolumeAttachment request."
    attachError: VolumeError
    "attachError represents the last error encountered during attach operation, if any."
    attached: bool
    "attached indicates the volume is successfully attached."
    attachmentMetadata: dict[str, str]
    "attachmentMetadata is populated with any information returned by the attach operation, upon successful attach, that must be passed into subsequent WaitForAttach or Mount calls."
    detachError: VolumeError
    "detachError represents the last error encountered during detach operation, if any."


class VolumeAttributesClass(TypedDict, total=False):
    "VolumeAttributesClass represents a specification of mutable volume attributes defined by the CSI driver."
    apiVersion: Required[Literal["storage.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    driverName: str
    "Name of the CSI driver This field is immutable."
    kind: Required[Literal["VolumeAttributesClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    parameters: dict[str, str]
    "parameters hold volume attributes defined by the CSI driver."


class VolumeError(TypedDict, total=False):
    "VolumeError captures an error encountered during a volume operation."
    errorCode: int
    "errorCode is a numeric gRPC code representing the error encountered during Attach or Detach operations."
    message: str
    "message represents the error encountered during Attach or Detach operation."
    time: str
    "time represents the time the error was encountered."


class VolumeNodeResources(TypedDict, total=False):
    "VolumeNodeResources is a set of resource limits for scheduling of volumes."
    count: int
    "count indicates the maximum number of unique volumes managed by the CSI driver that can be used on a node."
