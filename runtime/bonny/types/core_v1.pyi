"""Types of core/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import Condition, LabelSelector, NamedMeta, ObjectMeta

class AWSElasticBlockStoreVolumeSource(TypedDict, total=False):
    "Represents a Persistent Disk resource in AWS."
    fsType: str
    "fsType is the filesystem type of the volume that you want to mount."
    partition: int
    "partition is the partition in the volume that you want to mount."
    readOnly: bool
    "readOnly value true will force the readOnly setting in VolumeMounts."
    volumeID: str
    "volumeID is unique ID of the persistent disk resource in AWS (Amazon EBS volume)."


class Affinity(TypedDict, total=False):
    "Affinity is a group of affinity scheduling rules."
    nodeAffinity: NodeAffinity
    "Describes node affinity scheduling rules for the pod."
    podAffinity: PodAffinity
    "Describes pod affinity scheduling rules (e.g."
    podAntiAffinity: PodAntiAffinity
    "Describes pod anti-affinity scheduling rules (e.g."


class AppArmorProfile(TypedDict, total=False):
    "AppArmorProfile defines a pod or container's AppArmor settings."
    localhostProfile: str
    "localhostProfile indicates a profile loaded on the node that should be used."
    type: str
    "type indicates which kind of AppArmor profile will be applied."


class AttachedVolume(TypedDict, total=False):
    "AttachedVolume describes a volume attached to a node"
    devicePath: str
    "DevicePath represents the device path where the volume should be available"
    name: str
    "Name of the attached volume"


class AzureDiskVolumeSource(TypedDict, total=False):
    "AzureDisk represents an Azure Data Disk mount on the host and bind mount to the pod."
    cachingMode: str
    "cachingMode is the Host Caching mode: None, Read Only, Read Write."
    diskName: str
    "diskName is the Name of the data disk in the blob storage"
    diskURI: str
    "diskURI is the URI of data disk in the blob storage"
    fsType: str
    "fsType is Filesystem type to mount."
    kind: str
    "kind expected values are Shared: multiple blob disks per storage account  Dedicated: single blob disk per storage account  Managed: azure managed data disk (only in managed availability set)."
    readOnly: bool
    "readOnly Defaults to false (read/write)."


class AzureFilePersistentVolumeSource(TypedDict, total=False):
    "AzureFile represents an Azure File Service mount on the host and bind mount to the pod."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretName: str
    "secretName is the name of secret that contains Azure Storage Account Name and Key"
    secretNamespace: str
    "secretNamespace is the namespace of the secret that contains Azure Storage Account Name and Key default is the same as the Pod"
    shareName: str
    "shareName is the azure Share Name"


class AzureFileVolumeSource(TypedDict, total=False):
    "AzureFile represents an Azure File Service mount on the host and bind mount to the pod."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretName: str
    "secretName is the  name of secret that contains Azure Storage Account Name and Key"
    shareName: str
    "shareName is the azure share Name"


class Binding(TypedDict, total=False):
    "Binding ties one object to another; for example, a pod is bound to a node by a scheduler."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Binding"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    target: ObjectReference
    "The target object that you want to bind to the standard object."


class CSIPersistentVolumeSource(TypedDict, total=False):
    "Represents storage that is managed by an external CSI volume driver"
    controllerExpandSecretRef: SecretReference
    "controllerExpandSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI ControllerExpandVolume call."
    controllerPublishSecretRef: SecretReference
    "controllerPublishSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI ControllerPublishVolume and ControllerUnpublishVolume calls."
    driver: str
    "driver is the name of the driver to use for this volume."
    fsType: str
    "fsType to mount."
    nodeExpandSecretRef: SecretReference
    "nodeExpandSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI NodeExpandVolume call."
    nodePublishSecretRef: SecretReference
    "nodePublishSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI NodePublishVolume and NodeUnpublishVolume calls."
    nodeStageSecretRef: SecretReference
    "nodeStageSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI NodeStageVolume and NodeStageVolume and NodeUnstageVolume calls."
    readOnly: bool
    "readOnly value to pass to ControllerPublishVolumeRequest."
    volumeAttributes: dict[str, str]
    "volumeAttributes of the volume to publish."
    volumeHandle: str
    "volumeHandle is the unique volume name returned by the CSI volume plugin’s CreateVolume to refer to the volume on all subsequent calls."


class CSIVolumeSource(TypedDict, total=False):
    "Represents a source location of a volume to mount, managed by an external CSI driver"
    driver: str
    "driver is the name of the CSI driver that handles this volume."
    fsType: str
    "fsType to mount."
    nodePublishSecretRef: LocalObjectReference
    "nodePublishSecretRef is a reference to the secret object containing sensitive information to pass to the CSI driver to complete the CSI NodePublishVolume and NodeUnpublishVolume calls."
    readOnly: bool
    "readOnly specifies a read-only configuration for the volume."
    volumeAttributes: dict[str, str]
    "volumeAttributes stores driver-specific properties that are passed to the CSI driver."


class Capabilities(TypedDict, total=False):
    "Adds and removes POSIX capabilities from running containers."
    add: list[str]
    "Added capabilities"
    drop: list[str]
    "Removed capabilities"


class CephFSPersistentVolumeSource(TypedDict, total=False):
    "Represents a Ceph Filesystem mount that lasts the lifetime of a pod Cephfs volumes do not support ownership management or SELinux relabeling."
    monitors: list[str]
    "monitors is Required: Monitors is a collection of Ceph monitors More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"
    path: str
    "path is Optional: Used as the mounted root, rather than the full Ceph tree, default is /"
    readOnly: bool
    "readOnly is Optional: Defaults to false (read/write)."
    secretFile: str
    "secretFile is Optional: SecretFile is the path to key ring for User, default is /etc/ceph/user.secret More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"
    secretRef: SecretReference
    "secretRef is Optional: SecretRef is reference to the authentication secret for User, default is empty."
    user: str
    "user is Optional: User is the rados user name, default is admin More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"


class CephFSVolumeSource(TypedDict, total=False):
    "Represents a Ceph Filesystem mount that lasts the lifetime of a pod Cephfs volumes do not support ownership management or SELinux relabeling."
    monitors: list[str]
    "monitors is Required: Monitors is a collection of Ceph monitors More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"
    path: str
    "path is Optional: Used as the mounted root, rather than the full Ceph tree, default is /"
    readOnly: bool
    "readOnly is Optional: Defaults to false (read/write)."
    secretFile: str
    "secretFile is Optional: SecretFile is the path to key ring for User, default is /etc/ceph/user.secret More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"
    secretRef: LocalObjectReference
    "secretRef is Optional: SecretRef is reference to the authentication secret for User, default is empty."
    user: str
    "user is optional: User is the rados user name, default is admin More info: https://examples.k8s.io/volumes/cephfs/README.md#how-to-use-it"


class CinderPersistentVolumeSource(TypedDict, total=False):
    "Represents a cinder volume resource in Openstack."
    fsType: str
    "fsType Filesystem type to mount."
    readOnly: bool
    "readOnly is Optional: Defaults to false (read/write)."
    secretRef: SecretReference
    "secretRef is Optional: points to a secret object containing parameters used to connect to OpenStack."
    volumeID: str
    "volumeID used to identify the volume in cinder."


class CinderVolumeSource(TypedDict, total=False):
    "Represents a cinder volume resource in Openstack."
    fsType: str
    "fsType is the filesystem type to mount."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretRef: LocalObjectReference
    "secretRef is optional: points to a secret object containing parameters used to connect to OpenStack."
    volumeID: str
    "volumeID used to identify the volume in cinder."


class ClientIPConfig(TypedDict, total=False):
    "ClientIPConfig represents the configurations of Client IP based session affinity."
    timeoutSeconds: int
    "timeoutSeconds specifies the seconds of ClientIP type session sticky time."


class ClusterTrustBundleProjection(TypedDict, total=False):
    "ClusterTrustBundleProjection describes how to select a set of ClusterTrustBundle objects and project their contents into the pod filesystem."
    labelSelector: LabelSelector
    "Select all ClusterTrustBundles that match this label selector."
    name: str
    "Select a single ClusterTrustBundle by object name."
    optional: bool
    "If true, don't block pod startup if the referenced ClusterTrustBundle(s) aren't available."
    path: str
    "Relative path from the volume root to write the bundle."
    signerName: str
    "Select all ClusterTrustBundles that match this signer name."


class ComponentCondition(TypedDict, total=False):
    "Information about the condition of a component."
    error: str
    "Condition error code for a component."
    message: str
    "Message about the condition for a component."
    status: str
    "Status of the condition for a component."
    type: str
    "Type of condition for a component."


class ComponentStatus(TypedDict, total=False):
    "ComponentStatus (and ComponentStatusList) holds the cluster validation info."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    conditions: list[ComponentCondition]
    "List of component conditions observed"
    kind: Required[Literal["ComponentStatus"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."


class ConfigMap(TypedDict, total=False):
    "ConfigMap holds configuration data for pods to consume."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    binaryData: dict[str, str]
    "BinaryData contains the binary data."
    data: dict[str, str]
    "Data contains the configuration data."
    immutable: bool
    "Immutable, if set to true, ensures that data stored in the ConfigMap cannot be updated (only object metadata can be modified)."
    kind: Required[Literal["ConfigMap"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."


class ConfigMapEnvSource(TypedDict, total=False):
    "ConfigMapEnvSource selects a ConfigMap to populate the environment variables with."
    name: str
    "Name of the referent."
    optional: bool
    "Specify whether the ConfigMap must be defined"


class ConfigMapKeySelector(TypedDict, total=False):
    "Selects a key from a ConfigMap."
    key: str
    "The key to select."
    name: str
    "Name of the referent."
    optional: bool
    "Specify whether the ConfigMap or its key must be defined"


class ConfigMapNodeConfigSource(TypedDict, total=False):
    "ConfigMapNodeConfigSource contains the information to reference a ConfigMap as a config source for the Node."
    kubeletConfigKey: str
    "KubeletConfigKey declares which key of the referenced ConfigMap corresponds to the KubeletConfiguration structure This field is required in all cases."
    name: str
    "Name is the metadata.name of the referenced ConfigMap."
    namespace: str
    "Namespace is the metadata.namespace of the referenced ConfigMap."
    resourceVersion: str
    "ResourceVersion is the metadata.ResourceVersion of the referenced ConfigMap."
    uid: str
    "UID is the metadata.UID of the referenced ConfigMap."


class ConfigMapProjection(TypedDict, total=False):
    "Adapts a ConfigMap into a projected volume."
    items: list[KeyToPath]
    "items if unspecified, each key-value pair in the Data field of the referenced ConfigMap will be projected into the volume as a file whose name is the key and content is the value."
    name: str
    "Name of the referent."
    optional: bool
    "optional specify whether the ConfigMap or its keys must be defined"


class ConfigMapVolumeSource(TypedDict, total=False):
    "Adapts a ConfigMap into a volume."
    defaultMode: int
    "defaultMode is optional: mode bits used to set permissions on created files by default."
    items: list[KeyToPath]
    "items if unspecified, each key-value pair in the Data field of the referenced ConfigMap will be projected into the volume as a file whose name is the key and content is the value."
    name: str
    "Name of the referent."
    optional: bool
    "optional specify whether the ConfigMap or its keys must be defined"


class Container(TypedDict, total=False):
    "A single application container that you want to run within a pod."
    args: list[str]
    "Arguments to the entrypoint."
    command: list[str]
    "Entrypoint array."
    env: list[EnvVar]
    "List of environment variables to set in the container."
    envFrom: list[EnvFromSource]
    "List of sources to populate environment variables in the container."
    image: str
    "Container image name."
    imagePullPolicy: str
    "Image pull policy."
    lifecycle: Lifecycle
    "Actions that the management system should take in response to container lifecycle events."
    livenessProbe: Probe
    "Periodic probe of container liveness."
    name: str
    "Name of the container specified as a DNS_LABEL. Each container in a pod must have a unique name (DNS_LABEL)."
    ports: list[ContainerPort]
    "List of ports to expose from the container."
    readinessProbe: Probe
    "Periodic probe of container service readiness."
    resizePolicy: list[ContainerResizePolicy]
    "Resources resize policy for the container."
    resources: ResourceRequirements
    "Compute Resources required by this container."
    restartPolicy: str
    "RestartPolicy defines the restart behavior of individual containers in a pod."
    restartPolicyRules: list[ContainerRestartRule]
    "Represents a list of rules to be checked to determine if the container should be restarted on exit."
    securityContext: SecurityContext
    "SecurityContext defines the security options the container should be run with."
    startupProbe: Probe
    "StartupProbe indicates that the Pod has successfully initialized."
    stdin: bool
    "Whether this container should allocate a buffer for stdin in the container runtime."
    stdinOnce: bool
    "Whether the container runtime should close the stdin channel after it has been opened by a single attach."
    terminationMessagePath: str
    "Optional: Path at which the file to which the container's termination message will be written is mounted into the container's filesystem."
    terminationMessagePolicy: str
    "Indicate how the termination message should be populated."
    tty: bool
    "Whether this container should allocate a TTY for itself, also requires 'stdin' to be true."
    volumeDevices: list[VolumeDevice]
    "volumeDevices is the list of block devices to be used by the container."
    volumeMounts: list[VolumeMount]
    "Pod volumes to mount into the container's filesystem."
    workingDir: str
    "Container's working directory."


class ContainerExtendedResourceRequest(TypedDict, total=False):
    "ContainerExtendedResourceRequest has the mapping of container name, extended resource name to the device request name."
    containerName: str
    "The name of the container requesting resources."
    requestName: str
    "The name of the request in the special ResourceClaim which corresponds to the extended resource."
    resourceName: str
    "The name of the extended resource in that container which gets backed by DRA."


class ContainerImage(TypedDict, total=False):
    "Describe a container image"
    names: list[str]
    "Names by which this image is known."
    sizeBytes: int
    "The size of the image in bytes."


class ContainerPort(TypedDict, total=False):
    "ContainerPort represents a network port in a single container."
    containerPort: int
    "Number of port to expose on the pod's IP address."
    hostIP: str
    "What host IP to bind the external port to."
    hostPort: int
    "Number of port to expose on the host."
    name: str
    "If specified, this must be an IANA_SVC_NAME and unique within the pod."
    protocol: str
    "Protocol for port."


class ContainerResizePolicy(TypedDict, total=False):
    "ContainerResizePolicy represents resource resize policy for the container."
    resourceName: str
    "Name of the resource to which this resource resize policy applies."
    restartPolicy: str
    "Restart policy to apply when specified resource is resized."


class ContainerRestartRule(TypedDict, total=False):
    "ContainerRestartRule describes how a container exit is handled."
    action: str
    "Specifies the action taken on a container exit if the requirements are satisfied."
    exitCodes: ContainerRestartRuleOnExitCodes
    "Represents the exit codes to check on container exits."


class ContainerRestartRuleOnExitCodes(TypedDict, total=False):
    "ContainerRestartRuleOnExitCodes describes the condition for handling an exited container based on its exit codes."
    operator: str
    "Represents the relationship between the container exit code(s) and the specified values."
    values: list[int]
    "Specifies the set of values to check for container exit codes."


class ContainerState(TypedDict, total=False):
    "ContainerState holds a possible state of container."
    running: ContainerStateRunning
    "Details about a running container"
    terminated: ContainerStateTerminated
    "Details about a terminated container"
    waiting: ContainerStateWaiting
    "Details about a waiting container"


class ContainerStateRunning(TypedDict, total=False):
    "ContainerStateRunning is a running state of a container."
    startedAt: str
    "Time at which the container was last (re-)started"


class ContainerStateTerminated(TypedDict, total=False):
    "ContainerStateTerminated is a terminated state of a container."
    containerID: str
    "Container's ID in the format '<type>://<container_id>'"
    exitCode: int
    "Exit status from the last termination of the container"
    finishedAt: str
    "Time at which the container last terminated"
    message: str
    "Message regarding the last termination of the container"
    reason: str
    "(brief) reason from the last termination of the container"
    signal: int
    "Signal from the last termination of the container"
    startedAt: str
    "Time at which previous execution of the container started"


class ContainerStateWaiting(TypedDict, total=False):
    "ContainerStateWaiting is a waiting state of a container."
    message: str
    "Message regarding why the container is not yet running."
    reason: str
    "(brief) reason the container is not yet running."


class ContainerStatus(TypedDict, total=False):
    "ContainerStatus contains details for the current status of this container."
    allocatedResources: dict[str, str | float]
    "AllocatedResources represents the compute resources allocated for this container by the node."
    allocatedResourcesStatus: list[ResourceStatus]
    "AllocatedResourcesStatus represents the status of various resources allocated for this Pod."
    containerID: str
    "ContainerID is the ID of the container in the format '<type>://<container_id>'."
    image: str
    "Image is the name of container image that the container is running."
    imageID: str
    "ImageID is the image ID of the container's image."
    lastState: ContainerState
    "LastTerminationState holds the last termination state of the container to help debug container crashes and restarts."
    name: str
    "Name is a DNS_LABEL representing the unique name of the container."
    ready: bool
    "Ready specifies whether the container is currently passing its readiness check."
    resources: ResourceRequirements
    "Resources represents the compute resource requests and limits that have been successfully enacted on the running container after it has been started or has been successfully resized."
    restartCount: int
    "RestartCount holds the number of times the container has been restarted."
    started: bool
    "Started indicates whether the container has finished its postStart lifecycle hook and passed its startup probe."
    state: ContainerState
    "State holds details about the container's current condition."
    stopSignal: str
    "StopSignal reports the effective stop signal for this container"
    user: ContainerUser
    "User represents user identity information initially attached to the first process of the container"
    volumeMounts: list[VolumeMountStatus]
    "Status of volume mounts."


class ContainerUser(TypedDict, total=False):
    "ContainerUser represents user identity information"
    linux: LinuxContainerUser
    "Linux holds user identity information initially attached to the first process of the containers in Linux."


class DaemonEndpoint(TypedDict, total=False):
    "DaemonEndpoint contains information about a single Daemon endpoint."
    Port: int
    "Port number of the given endpoint."


class DownwardAPIProjection(TypedDict, total=False):
    "Represents downward API info for projecting into a projected volume."
    items: list[DownwardAPIVolumeFile]
    "Items is a list of DownwardAPIVolume file"


class DownwardAPIVolumeFile(TypedDict, total=False):
    "DownwardAPIVolumeFile represents information to create the file containing the pod field"
    fieldRef: ObjectFieldSelector
    "Required: Selects a field of the pod: only annotations, labels, name, namespace and uid are supported."
    mode: int
    "Optional: mode bits used to set permissions on this file, must be an octal value between 0000 and 0777 or a decimal value between 0 and 511."
    path: str
    "Required: Path is  the relative path name of the file to be created."
    resourceFieldRef: ResourceFieldSelector
    "Selects a resource of the container: only resources limits and requests (limits.cpu, limits.memory, requests.cpu and requests.memory) are currently supported."


class DownwardAPIVolumeSource(TypedDict, total=False):
    "DownwardAPIVolumeSource represents a volume containing downward API info."
    defaultMode: int
    "Optional: mode bits to use on created files by default."
    items: list[DownwardAPIVolumeFile]
    "Items is a list of downward API volume file"


class EmptyDirVolumeSource(TypedDict, total=False):
    "Represents an empty directory for a pod."
    medium: str
    "medium represents what type of storage medium should back this directory."
    sizeLimit: str | float
    "sizeLimit is the total amount of local storage required for this EmptyDir volume."


class EndpointAddress(TypedDict, total=False):
    "EndpointAddress is a tuple that describes single IP address."
    hostname: str
    "The Hostname of this endpoint"
    ip: str
    "The IP of this endpoint."
    nodeName: str
    "Optional: Node hosting this endpoint."
    targetRef: ObjectReference
    "Reference to object providing the endpoint."


class EndpointPort(TypedDict, total=False):
    "EndpointPort is a tuple that describes a single port."
    appProtocol: str
    "The application protocol for this port."
    name: str
    "The name of this port."
    port: int
    "The port number of the endpoint."
    protocol: str
    "The IP protocol for this port."


class EndpointSubset(TypedDict, total=False):
    "EndpointSubset is a group of addresses with a common set of ports."
    addresses: list[EndpointAddress]
    "IP addresses which offer the related ports that are marked as ready."
    notReadyAddresses: list[EndpointAddress]
    "IP addresses which offer the related ports but are not currently marked as ready because they have not yet finished starting, have recently failed a readiness check, or have recently failed a liveness check."
    ports: list[EndpointPort]
    "Port numbers available on the related IP addresses."


class Endpoints(TypedDict, total=False):
    "Endpoints is a collection of endpoints that implement the actual service."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Endpoints"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    subsets: list[EndpointSubset]
    "The set of all endpoints is the union of all subsets."


class EnvFromSource(TypedDict, total=False):
    "EnvFromSource represents the source of a set of ConfigMaps or Secrets"
    configMapRef: ConfigMapEnvSource
    "The ConfigMap to select from"
    prefix: str
    "Optional text to prepend to the name of each environment variable."
    secretRef: SecretEnvSource
    "The Secret to select from"


class EnvVar(TypedDict, total=False):
    "EnvVar represents an environment variable present in a Container."
    name: str
    "Name of the environment variable."
    value: str
    "Variable references $(VAR_NAME) are expanded using the previously defined environment variables in the container and any service environment variables."
    valueFrom: EnvVarSource
    "Source for the environment variable's value."


class EnvVarSource(TypedDict, total=False):
    "EnvVarSource represents a source for the value of an EnvVar."
    configMapKeyRef: ConfigMapKeySelector
    "Selects a key of a ConfigMap."
    fieldRef: ObjectFieldSelector
    "Selects a field of the pod: supports metadata.name, metadata.namespace, `metadata.labels['<KEY>']`, `metadata.annotations['<KEY>']`, spec.nodeName, spec.serviceAccountName, status.hostIP, status.podIP, status.podIPs."
    fileKeyRef: FileKeySelector
    "FileKeyRef selects a key of the env file."
    resourceFieldRef: ResourceFieldSelector
    "Selects a resource of the container: only resources limits and requests (limits.cpu, limits.memory, limits.ephemeral-storage, requests.cpu, requests.memory and requests.ephemeral-storage) are currently supported."
    secretKeyRef: SecretKeySelector
    "Selects a key of a secret in the pod's namespace"


class EphemeralContainer(TypedDict, total=False):
    "An EphemeralContainer is a temporary container that you may add to an existing Pod for user-initiated activities such as debugging."
    args: list[str]
    "Arguments to the entrypoint."
    command: list[str]
    "Entrypoint array."
    env: list[EnvVar]
    "List of environment variables to set in the container."
    envFrom: list[EnvFromSource]
    "List of sources to populate environment variables in the container."
    image: str
    "Container image name."
    imagePullPolicy: str
    "Image pull policy."
    lifecycle: Lifecycle
    "Lifecycle is not allowed for ephemeral containers."
    livenessProbe: Probe
    "Probes are not allowed for ephemeral containers."
    name: str
    "Name of the ephemeral container specified as a DNS_LABEL. This name must be unique among all containers, init containers and ephemeral containers."
    ports: list[ContainerPort]
    "Ports are not allowed for ephemeral containers."
    readinessProbe: Probe
    "Probes are not allowed for ephemeral containers."
    resizePolicy: list[ContainerResizePolicy]
    "Resources resize policy for the container."
    resources: ResourceRequirements
    "Resources are not allowed for ephemeral containers."
    restartPolicy: str
    "Restart policy for the container to manage the restart behavior of each container within a pod."
    restartPolicyRules: list[ContainerRestartRule]
    "Represents a list of rules to be checked to determine if the container should be restarted on exit."
    securityContext: SecurityContext
    "Optional: SecurityContext defines the security options the ephemeral container should be run with."
    startupProbe: Probe
    "Probes are not allowed for ephemeral containers."
    stdin: bool
    "Whether this container should allocate a buffer for stdin in the container runtime."
    stdinOnce: bool
    "Whether the container runtime should close the stdin channel after it has been opened by a single attach."
    targetContainerName: str
    "If set, the name of the container from PodSpec that this ephemeral container targets."
    terminationMessagePath: str
    "Optional: Path at which the file to which the container's termination message will be written is mounted into the container's filesystem."
    terminationMessagePolicy: str
    "Indicate how the termination message should be populated."
    tty: bool
    "Whether this container should allocate a TTY for itself, also requires 'stdin' to be true."
    volumeDevices: list[VolumeDevice]
    "volumeDevices is the list of block devices to be used by the container."
    volumeMounts: list[VolumeMount]
    "Pod volumes to mount into the container's filesystem."
    workingDir: str
    "Container's working directory."


class EphemeralVolumeSource(TypedDict, total=False):
    "Represents an ephemeral volume that is handled by a normal storage driver."
    volumeClaimTemplate: PersistentVolumeClaimTemplate
    "Will be used to create a stand-alone PVC to provision the volume."


class Event(TypedDict, total=False):
    "Event is a report of an event somewhere in the cluster."
    action: str
    "What action was taken/failed regarding to the Regarding object."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    count: int
    "The number of times this event has occurred."
    eventTime: str
    "Time when this Event was first observed."
    firstTimestamp: str
    "The time at which the event was first recorded."
    involvedObject: ObjectReference
    "The object that this event is about."
    kind: Required[Literal["Event"]]
    "Kind is a string value representing the REST resource this object represents."
    lastTimestamp: str
    "The time at which the most recent occurrence of this event was recorded."
    message: str
    "A human-readable description of the status of this operation."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    reason: str
    "This should be a short, machine understandable string that gives the reason for the transition into the object's current status."
    related: ObjectReference
    "Optional secondary object for more complex actions."
    reportingComponent: str
    "Name of the controller that emitted this Event, e.g."
    reportingInstance: str
    "ID of the controller instance, e.g."
    series: EventSeries
    "Data about the Event series this event represents or nil if it's a singleton Event."
    source: EventSource
    "The component reporting this event."
    type: str
    "Type of this event (Normal, Warning), new types could be added in the future"


class EventSeries(TypedDict, total=False):
    "EventSeries contain information on series of events, i.e."
    count: int
    "Number of occurrences in this series up to the last heartbeat time"
    lastObservedTime: str
    "Time of the last occurrence observed"


class EventSource(TypedDict, total=False):
    "EventSource contains information for an event."
    component: str
    "Component from which the event is generated."
    host: str
    "Node name on which the event is generated."


class ExecAction(TypedDict, total=False):
    "ExecAction describes a \"run in container\" action."
    command: list[str]
    "Command is the command line to execute inside the container, the working directory for the command  is root ('/') in the container's filesystem."


class FCVolumeSource(TypedDict, total=False):
    "Represents a Fibre Channel volume."
    fsType: str
    "fsType is the filesystem type to mount."
    lun: int
    "lun is Optional: FC target lun number"
    readOnly: bool
    "readOnly is Optional: Defaults to false (read/write)."
    targetWWNs: list[str]
    "targetWWNs is Optional: FC target worldwide names (WWNs)"
    wwids: list[str]
    "wwids Optional: FC volume world wide identifiers (wwids) Either wwids or combination of targetWWNs and lun must be set, but not both simultaneously."


class FileKeySelector(TypedDict, total=False):
    "FileKeySelector selects a key of the env file."
    key: str
    "The key within the env file."
    optional: bool
    "Specify whether the file or its key must be defined."
    path: str
    "The path within the volume from which to select the file."
    volumeName: str
    "The name of the volume mount containing the env file."


class FlexPersistentVolumeSource(TypedDict, total=False):
    "FlexPersistentVolumeSource represents a generic persistent volume resource that is provisioned/attached using an exec based plugin."
    driver: str
    "driver is the name of the driver to use for this volume."
    fsType: str
    "fsType is the Filesystem type to mount."
    options: dict[str, str]
    "options is Optional: this field holds extra command options if any."
    readOnly: bool
    "readOnly is Optional: defaults to false (read/write)."
    secretRef: SecretReference
    "secretRef is Optional: SecretRef is reference to the secret object containing sensitive information to pass to the plugin scripts."


class FlexVolumeSource(TypedDict, total=False):
    "FlexVolume represents a generic volume resource that is provisioned/attached using an exec based plugin."
    driver: str
    "driver is the name of the driver to use for this volume."
    fsType: str
    "fsType is the filesystem type to mount."
    options: dict[str, str]
    "options is Optional: this field holds extra command options if any."
    readOnly: bool
    "readOnly is Optional: defaults to false (read/write)."
    secretRef: LocalObjectReference
    "secretRef is Optional: secretRef is reference to the secret object containing sensitive information to pass to the plugin scripts."


class FlockerVolumeSource(TypedDict, total=False):
    "Represents a Flocker volume mounted by the Flocker agent."
    datasetName: str
    "datasetName is Name of the dataset stored as metadata -> name on the dataset for Flocker should be considered as deprecated"
    datasetUUID: str
    "datasetUUID is the UUID of the dataset."


class GCEPersistentDiskVolumeSource(TypedDict, total=False):
    "Represents a Persistent Disk resource in Google Compute Engine."
    fsType: str
    "fsType is filesystem type of the volume that you want to mount."
    partition: int
    "partition is the partition in the volume that you want to mount."
    pdName: str
    "pdName is unique name of the PD resource in GCE. Used to identify the disk in GCE. More info: https://kubernetes.io/docs/concepts/storage/volumes#gcepersistentdisk"
    readOnly: bool
    "readOnly here will force the ReadOnly setting in VolumeMounts."


class GRPCAction(TypedDict, total=False):
    "GRPCAction specifies an action involving a GRPC service."
    port: int
    "Port number of the gRPC service."
    service: str
    "Service is the name of the service to place in the gRPC HealthCheckRequest (see https://github.com/grpc/grpc/blob/master/doc/health-checking.md)."


class GitRepoVolumeSource(TypedDict, total=False):
    "Represents a volume that is populated with the contents of a git repository."
    directory: str
    "directory is the target directory name."
    repository: str
    "repository is the URL"
    revision: str
    "revision is the commit hash for the specified revision."


class GlusterfsPersistentVolumeSource(TypedDict, total=False):
    "Represents a Glusterfs mount that lasts the lifetime of a pod."
    endpoints: str
    "endpoints is the endpoint name that details Glusterfs topology."
    endpointsNamespace: str
    "endpointsNamespace is the namespace that contains Glusterfs endpoint."
    path: str
    "path is the Glusterfs volume path."
    readOnly: bool
    "readOnly here will force the Glusterfs volume to be mounted with read-only permissions."


class GlusterfsVolumeSource(TypedDict, total=False):
    "Represents a Glusterfs mount that lasts the lifetime of a pod."
    endpoints: str
    "endpoints is the endpoint name that details Glusterfs topology."
    path: str
    "path is the Glusterfs volume path."
    readOnly: bool
    "readOnly here will force the Glusterfs volume to be mounted with read-only permissions."


class HTTPGetAction(TypedDict, total=False):
    "HTTPGetAction describes an action based on HTTP Get requests."
    host: str
    "Host name to connect to, defaults to the pod IP. You probably want to set \"Host\" in httpHeaders instead."
    httpHeaders: list[HTTPHeader]
    "Custom headers to set in the request."
    path: str
    "Path to access on the HTTP server."
    port: int | str
    "Name or number of the port to access on the container."
    scheme: str
    "Scheme to use for connecting to the host."


class HTTPHeader(TypedDict, total=False):
    "HTTPHeader describes a custom header to be used in HTTP probes"
    name: str
    "The header field name."
    value: str
    "The header field value"


class HostAlias(TypedDict, total=False):
    "HostAlias holds the mapping between IP and hostnames that will be injected as an entry in the pod's hosts file."
    hostnames: list[str]
    "Hostnames for the above IP address."
    ip: str
    "IP address of the host file entry."


class HostIP(TypedDict, total=False):
    "HostIP represents a single IP address allocated to the host."
    ip: str
    "IP is the IP address assigned to the host"


class HostPathVolumeSource(TypedDict, total=False):
    "Represents a host path mapped into a pod."
    path: str
    "path of the directory on the host."
    type: str
    "type for HostPath Volume Defaults to \"\" More info: https://kubernetes.io/docs/concepts/storage/volumes#hostpath"


class ISCSIPersistentVolumeSource(TypedDict, total=False):
    "ISCSIPersistentVolumeSource represents an ISCSI disk."
    chapAuthDiscovery: bool
    "chapAuthDiscovery defines whether support iSCSI Discovery CHAP authentication"
    chapAuthSession: bool
    "chapAuthSession defines whether support iSCSI Session CHAP authentication"
    fsType: str
    "fsType is the filesystem type of the volume that you want to mount."
    initiatorName: str
    "initiatorName is the custom iSCSI Initiator Name."
    iqn: str
    "iqn is Target iSCSI Qualified Name."
    iscsiInterface: str
    "iscsiInterface is the interface Name that uses an iSCSI transport."
    lun: int
    "lun is iSCSI Target Lun number."
    portals: list[str]
    "portals is the iSCSI Target Portal List."
    readOnly: bool
    "readOnly here will force the ReadOnly setting in VolumeMounts."
    secretRef: SecretReference
    "secretRef is the CHAP Secret for iSCSI target and initiator authentication"
    targetPortal: str
    "targetPortal is iSCSI Target Portal."


class ISCSIVolumeSource(TypedDict, total=False):
    "Represents an ISCSI disk."
    chapAuthDiscovery: bool
    "chapAuthDiscovery defines whether support iSCSI Discovery CHAP authentication"
    chapAuthSession: bool
    "chapAuthSession defines whether support iSCSI Session CHAP authentication"
    fsType: str
    "fsType is the filesystem type of the volume that you want to mount."
    initiatorName: str
    "initiatorName is the custom iSCSI Initiator Name."
    iqn: str
    "iqn is the target iSCSI Qualified Name."
    iscsiInterface: str
    "iscsiInterface is the interface Name that uses an iSCSI transport."
    lun: int
    "lun represents iSCSI Target Lun number."
    portals: list[str]
    "portals is the iSCSI Target Portal List."
    readOnly: bool
    "readOnly here will force the ReadOnly setting in VolumeMounts."
    secretRef: LocalObjectReference
    "secretRef is the CHAP Secret for iSCSI target and initiator authentication"
    targetPortal: str
    "targetPortal is iSCSI Target Portal."


class ImageVolumeSource(TypedDict, total=False):
    "ImageVolumeSource represents a image volume resource."
    pullPolicy: str
    "Policy for pulling OCI objects."
    reference: str
    "Required: Image or artifact reference to be used."


class ImageVolumeStatus(TypedDict, total=False):
    "ImageVolumeStatus represents the image-based volume status."
    imageRef: str
    "ImageRef is the digest of the image used for this volume."


class KeyToPath(TypedDict, total=False):
    "Maps a string key to a path within a volume."
    key: str
    "key is the key to project."
    mode: int
    "mode is Optional: mode bits used to set permissions on this file."
    path: str
    "path is the relative path of the file to map the key to."


class Lifecycle(TypedDict, total=False):
    "Lifecycle describes actions that the management system should take in response to container lifecycle events."
    postStart: LifecycleHandler
    "PostStart is called immediately after a container is created."
    preStop: LifecycleHandler
    "PreStop is called immediately before a container is terminated due to an API request or management event such as liveness/startup probe failure, preemption, resource contention, etc."
    stopSignal: str
    "StopSignal defines which signal will be sent to a container when it is being stopped."


class LifecycleHandler(TypedDict, total=False):
    "LifecycleHandler defines a specific action that should be taken in a lifecycle hook."
    exec: ExecAction
    "Exec specifies a command to execute in the container."
    httpGet: HTTPGetAction
    "HTTPGet specifies an HTTP GET request to perform."
    sleep: SleepAction
    "Sleep represents a duration that the container should sleep."
    tcpSocket: TCPSocketAction
    "Deprecated."


class LimitRange(TypedDict, total=False):
    "LimitRange sets resource usage limits for each kind of resource in a Namespace."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["LimitRange"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: LimitRangeSpec
    "Spec defines the limits enforced."


class LimitRangeItem(TypedDict, total=False):
    "LimitRangeItem defines a min/max usage limit for any resource that matches on kind."
    default: dict[str, str | float]
    "Default resource requirement limit value by resource name if resource limit is omitted."
    defaultRequest: dict[str, str | float]
    "DefaultRequest is the default resource requirement request value by resource name if resource request is omitted."
    max: dict[str, str | float]
    "Max usage constraints on this kind by resource name."
    maxLimitRequestRatio: dict[str, str | float]
    "MaxLimitRequestRatio if specified, the named resource must have a request and limit that are both non-zero where limit divided by request is less than or equal to the enumerated value; this represents the max burst for the named resource."
    min: dict[str, str | float]
    "Min usage constraints on this kind by resource name."
    type: str
    "Type of resource that this limit applies to."


class LimitRangeSpec(TypedDict, total=False):
    "LimitRangeSpec defines a min/max usage limit for resources that match on kind."
    limits: list[LimitRangeItem]
    "Limits is the list of LimitRangeItem objects that are enforced."


class LinuxContainerUser(TypedDict, total=False):
    "LinuxContainerUser represents user identity information in Linux containers"
    gid: int
    "GID is the primary gid initially attached to the first process in the container"
    supplementalGroups: list[int]
    "SupplementalGroups are the supplemental groups initially attached to the first process in the container"
    uid: int
    "UID is the primary uid initially attached to the first process in the container"


class LoadBalancerIngress(TypedDict, total=False):
    "LoadBalancerIngress represents the status of a load-balancer ingress point: traffic intended for the service should be sent to an ingress point."
    hostname: str
    "Hostname is set for load-balancer ingress points that are DNS based (typically AWS load-balancers)"
    ip: str
    "IP is set for load-balancer ingress points that are IP based (typically GCE or OpenStack load-balancers)"
    ipMode: str
    "IPMode specifies how the load-balancer IP behaves, and may only be specified when the ip field is specified."
    ports: list[PortStatus]
    "Ports is a list of records of service ports If used, every port defined in the service should have an entry in it"


class LoadBalancerStatus(TypedDict, total=False):
    "LoadBalancerStatus represents the status of a load-balancer."
    ingress: list[LoadBalancerIngress]
    "Ingress is a list containing ingress points for the load-balancer."


class LocalObjectReference(TypedDict, total=False):
    "LocalObjectReference contains enough information to let you locate the referenced object inside the same namespace."
    name: str
    "Name of the referent."


class LocalVolumeSource(TypedDict, total=False):
    "Local represents directly-attached storage with node affinity"
    fsType: str
    "fsType is the filesystem type to mount."
    path: str
    "path of the full path to the volume on the node."


class ModifyVolumeStatus(TypedDict, total=False):
    "ModifyVolumeStatus represents the status object of ControllerModifyVolume operation"
    status: str
    "status is the status of the ControllerModifyVolume operation."
    targetVolumeAttributesClassName: str
    "targetVolumeAttributesClassName is the name of the VolumeAttributesClass the PVC currently being reconciled"


class NFSVolumeSource(TypedDict, total=False):
    "Represents an NFS mount that lasts the lifetime of a pod."
    path: str
    "path that is exported by the NFS server."
    readOnly: bool
    "readOnly here will force the NFS export to be mounted with read-only permissions."
    server: str
    "server is the hostname or IP address of the NFS server."


class Namespace(TypedDict, total=False):
    "Namespace provides a scope for Names."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Namespace"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: NamespaceSpec
    "Spec defines the behavior of the Namespace."
    status: NamespaceStatus
    "Status describes the current status of a Namespace."


class NamespaceCondition(TypedDict, total=False):
    "NamespaceCondition contains details about state of namespace."
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    message: str
    "Human-readable message indicating details about last transition."
    reason: str
    "Unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of namespace controller condition."


class NamespaceSpec(TypedDict, total=False):
    "NamespaceSpec describes the attributes on a Namespace."
    finalizers: list[str]
    "Finalizers is an opaque list of values that must be empty to permanently remove object from storage."


class NamespaceStatus(TypedDict, total=False):
    "NamespaceStatus is information about the current status of a Namespace."
    conditions: list[NamespaceCondition]
    "Represents the latest available observations of a namespace's current state."
    phase: str
    "Phase is the current lifecycle phase of the namespace."


class Node(TypedDict, total=False):
    "Node is a worker node in Kubernetes."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Node"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: NodeSpec
    "Spec defines the behavior of a node."
    status: NodeStatus
    "Most recently observed status of the node."


class NodeAddress(TypedDict, total=False):
    "NodeAddress contains information for the node's address."
    address: str
    "The node address."
    type: str
    "Node address type, one of Hostname, ExternalIP or InternalIP."


class NodeAffinity(TypedDict, total=False):
    "Node affinity is a group of node affinity scheduling rules."
    preferredDuringSchedulingIgnoredDuringExecution: list[PreferredSchedulingTerm]
    "The scheduler will prefer to schedule pods to nodes that satisfy the affinity expressions specified by this field, but it may choose a node that violates one or more of the expressions."
    requiredDuringSchedulingIgnoredDuringExecution: NodeSelector
    "If the affinity requirements specified by this field are not met at scheduling time, the pod will not be scheduled onto the node."


class NodeAllocatableResourceClaimStatus(TypedDict, total=False):
    "NodeAllocatableResourceClaimStatus describes the status of node allocatable resources allocated via DRA."
    containers: list[str]
    "Containers lists the names of all containers in this pod that reference the claim."
    resourceClaimName: str
    "ResourceClaimName is the resource claim referenced by the pod that resulted in this node allocatable resource allocation."
    resources: dict[str, str | float]
    "Resources is a map of the node-allocatable resource name to the aggregate quantity allocated to the claim."


class NodeCondition(TypedDict, total=False):
    "NodeCondition contains condition information for a node."
    lastHeartbeatTime: str
    "Last time we got an update on a given condition."
    lastTransitionTime: str
    "Last time the condition transit from one status to another."
    message: str
    "Human readable message indicating details about last transition."
    reason: str
    "(brief) reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of node condition."


class NodeConfigSource(TypedDict, total=False):
    "NodeConfigSource specifies a source of node configuration."
    configMap: ConfigMapNodeConfigSource
    "ConfigMap is a reference to a Node's ConfigMap"


class NodeConfigStatus(TypedDict, total=False):
    "NodeConfigStatus describes the status of the config assigned by Node.Spec.ConfigSource."
    active: NodeConfigSource
    "Active reports the checkpointed config the node is actively using."
    assigned: NodeConfigSource
    "Assigned reports the checkpointed config the node will try to use."
    error: str
    "Error describes any problems reconciling the Spec.ConfigSource to the Active config."
    lastKnownGood: NodeConfigSource
    "LastKnownGood reports the checkpointed config the node will fall back to when it encounters an error attempting to use the Assigned config."


class NodeDaemonEndpoints(TypedDict, total=False):
    "NodeDaemonEndpoints lists ports opened by daemons running on the Node."
    kubeletEndpoint: DaemonEndpoint
    "Endpoint on which Kubelet is listening."


class NodeFeatures(TypedDict, total=False):
    "NodeFeatures describes the set of features implemented by the CRI implementation."
    supplementalGroupsPolicy: bool
    "SupplementalGroupsPolicy is set to true if the runtime supports SupplementalGroupsPolicy and ContainerUser."


class NodeRuntimeHandler(TypedDict, total=False):
    "NodeRuntimeHandler is a set of runtime handler information."
    features: NodeRuntimeHandlerFeatures
    "Supported features."
    name: str
    "Runtime handler name."


class NodeRuntimeHandlerFeatures(TypedDict, total=False):
    "NodeRuntimeHandlerFeatures is a set of features implemented by the runtime handler."
    recursiveReadOnlyMounts: bool
    "RecursiveReadOnlyMounts is set to true if the runtime handler supports RecursiveReadOnlyMounts."
    userNamespaces: bool
    "UserNamespaces is set to true if the runtime handler supports UserNamespaces, including for volumes."


class NodeSelector(TypedDict, total=False):
    "A node selector represents the union of the results of one or more label queries over a set of nodes; that is, it represents the OR of the selectors represented by the node selector terms."
    nodeSelectorTerms: list[NodeSelectorTerm]
    "Required."


class NodeSelectorRequirement(TypedDict, total=False):
    "A node selector requirement is a selector that contains values, a key, and an operator that relates the key and values."
    key: str
    "The label key that the selector applies to."
    operator: str
    "Represents a key's relationship to a set of values."
    values: list[str]
    "An array of string values."


class NodeSelectorTerm(TypedDict, total=False):
    "A null or empty node selector term matches no objects."
    matchExpressions: list[NodeSelectorRequirement]
    "A list of node selector requirements by node's labels."
    matchFields: list[NodeSelectorRequirement]
    "A list of node selector requirements by node's fields."


class NodeSpec(TypedDict, total=False):
    "NodeSpec describes the attributes that a node is created with."
    configSource: NodeConfigSource
    "Deprecated: Previously used to specify the source of the node's configuration for the DynamicKubeletConfig feature."
    externalID: str
    "Deprecated."
    podCIDR: str
    "PodCIDR represents the pod IP range assigned to the node."
    podCIDRs: list[str]
    "podCIDRs represents the IP ranges assigned to the node for usage by Pods on that node."
    providerID: str
    "ID of the node assigned by the cloud provider in the format: <ProviderName>://<ProviderSpecificNodeID>"
    taints: list[Taint]
    "If specified, the node's taints."
    unschedulable: bool
    "Unschedulable controls node schedulability of new pods."


class NodeStatus(TypedDict, total=False):
    "NodeStatus is information about the current status of a node."
    addresses: list[NodeAddress]
    "List of addresses reachable to the node."
    allocatable: dict[str, str | float]
    "Allocatable represents the resources of a node that are available for scheduling."
    capacity: dict[str, str | float]
    "Capacity represents the total resources of a node."
    conditions: list[NodeCondition]
    "Conditions is an array of current observed node conditions."
    config: NodeConfigStatus
    "Status of the config assigned to the node via the dynamic Kubelet config feature."
    daemonEndpoints: NodeDaemonEndpoints
    "Endpoints of daemons running on the Node."
    declaredFeatures: list[str]
    "DeclaredFeatures represents the features related to feature gates that are declared by the node."
    features: NodeFeatures
    "Features describes the set of features implemented by the CRI implementation."
    images: list[ContainerImage]
    "List of container images on this node"
    nodeInfo: NodeSystemInfo
    "Set of ids/uuids to uniquely identify the node."
    phase: str
    "NodePhase is the recently observed lifecycle phase of the node."
    runtimeHandlers: list[NodeRuntimeHandler]
    "The available runtime handlers."
    volumesAttached: list[AttachedVolume]
    "List of volumes that are attached to the node."
    volumesInUse: list[str]
    "List of attachable volumes in use (mounted) by the node."


class NodeSwapStatus(TypedDict, total=False):
    "NodeSwapStatus represents swap memory information."
    capacity: int
    "Total amount of swap memory in bytes."


class NodeSystemInfo(TypedDict, total=False):
    "NodeSystemInfo is a set of ids/uuids to uniquely identify the node."
    architecture: str
    "The Architecture reported by the node"
    bootID: str
    "Boot ID reported by the node."
    containerRuntimeVersion: str
    "ContainerRuntime Version reported by the node through runtime remote API (e.g."
    kernelVersion: str
    "Kernel Version reported by the node from 'uname -r' (e.g."
    kubeProxyVersion: str
    "Deprecated: KubeProxy Version reported by the node."
    kubeletVersion: str
    "Kubelet Version reported by the node."
    machineID: str
    "MachineID reported by the node."
    operatingSystem: str
    "The Operating System reported by the node"
    osImage: str
    "OS Image reported by the node from /etc/os-release (e.g."
    swap: NodeSwapStatus
    "Swap Info reported by the node."
    systemUUID: str
    "SystemUUID reported by the node."


class ObjectFieldSelector(TypedDict, total=False):
    "ObjectFieldSelector selects an APIVersioned field of an object."
    apiVersion: str
    "Version of the schema the FieldPath is written in terms of, defaults to \"v1\"."
    fieldPath: str
    "Path of the field to select in the specified API version."


class ObjectReference(TypedDict, total=False):
    "ObjectReference contains enough information to let you inspect or modify the referred object."
    apiVersion: str
    "API version of the referent."
    fieldPath: str
    "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod)."
    kind: str
    "Kind of the referent."
    name: str
    "Name of the referent."
    namespace: str
    "Namespace of the referent."
    resourceVersion: str
    "Specific resourceVersion to which this reference is made, if any."
    uid: str
    "UID of the referent."


class PersistentVolume(TypedDict, total=False):
    "PersistentVolume (PV) is a storage resource provisioned by an administrator."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["PersistentVolume"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: PersistentVolumeSpec
    "spec defines a specification of a persistent volume owned by the cluster."
    status: PersistentVolumeStatus
    "status represents the current information/status for the persistent volume."


class PersistentVolumeClaim(TypedDict, total=False):
    "PersistentVolumeClaim is a user's request for and claim to a persistent volume"
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["PersistentVolumeClaim"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: PersistentVolumeClaimSpec
    "spec defines the desired characteristics of a volume requested by a pod author."
    status: PersistentVolumeClaimStatus
    "status represents the current information/status of a persistent volume claim."


class PersistentVolumeClaimCondition(TypedDict, total=False):
    "PersistentVolumeClaimCondition contains details about state of pvc"
    lastProbeTime: str
    "lastProbeTime is the time we probed the condition."
    lastTransitionTime: str
    "lastTransitionTime is the time the condition transitioned from one status to another."
    message: str
    "message is the human-readable message indicating details about last transition."
    reason: str
    "reason is a unique, this should be a short, machine understandable string that gives the reason for condition's last transition."
    status: str
    "Status is the status of the condition."
    type: str
    "Type is the type of the condition."


class PersistentVolumeClaimSpec(TypedDict, total=False):
    "PersistentVolumeClaimSpec describes the common attributes of storage devices and allows a Source for provider-specific attributes"
    accessModes: list[str]
    "accessModes contains the desired access modes the volume should have."
    dataSource: TypedLocalObjectReference
    "dataSource field can be used to specify either: * An existing VolumeSnapshot object (snapshot.storage.k8s.io/VolumeSnapshot) * An existing PVC (PersistentVolumeClaim) If the provisioner or an external controller can support the specified data source, it will create a new volume based on the contents of the specified data source."
    dataSourceRef: TypedObjectReference
    "dataSourceRef specifies the object from which to populate the volume with data, if a non-empty volume is desired."
    resources: VolumeResourceRequirements
    "resources represents the minimum resources the volume should have."
    selector: LabelSelector
    "selector is a label query over volumes to consider for binding."
    storageClassName: str
    "storageClassName is the name of the StorageClass required by the claim."
    volumeAttributesClassName: str
    "volumeAttributesClassName may be used to set the VolumeAttributesClass used by this claim."
    volumeMode: str
    "volumeMode defines what type of volume is required by the claim."
    volumeName: str
    "volumeName is the binding reference to the PersistentVolume backing this claim."


class PersistentVolumeClaimStatus(TypedDict, total=False):
    "PersistentVolumeClaimStatus is the current status of a persistent volume claim."
    accessModes: list[str]
    "accessModes contains the actual access modes the volume backing the PVC has."
    allocatedResourceStatuses: dict[str, str]
    "allocatedResourceStatuses stores status of resource being resized for the given PVC. Key names follow standard Kubernetes label syntax."
    allocatedResources: dict[str, str | float]
    "allocatedResources tracks the resources allocated to a PVC including its capacity."
    capacity: dict[str, str | float]
    "capacity represents the actual resources of the underlying volume."
    conditions: list[PersistentVolumeClaimCondition]
    "conditions is the current Condition of persistent volume claim."
    currentVolumeAttributesClassName: str
    "currentVolumeAttributesClassName is the current name of the VolumeAttributesClass the PVC is using."
    modifyVolumeStatus: ModifyVolumeStatus
    "ModifyVolumeStatus represents the status object of ControllerModifyVolume operation."
    phase: str
    "phase represents the current phase of PersistentVolumeClaim."


class PersistentVolumeClaimTemplate(TypedDict, total=False):
    "PersistentVolumeClaimTemplate is used to produce PersistentVolumeClaim objects as part of an EphemeralVolumeSource."
    metadata: ObjectMeta
    "May contain labels and annotations that will be copied into the PVC when creating it."
    spec: PersistentVolumeClaimSpec
    "The specification for the PersistentVolumeClaim."


class PersistentVolumeClaimVolumeSource(TypedDict, total=False):
    "PersistentVolumeClaimVolumeSource references the user's PVC in the same namespace."
    claimName: str
    "claimName is the name of a PersistentVolumeClaim in the same namespace as the pod using this volume."
    readOnly: bool
    "readOnly Will force the ReadOnly setting in VolumeMounts."


class PersistentVolumeSpec(TypedDict, total=False):
    "PersistentVolumeSpec is the specification of a persistent volume."
    accessModes: list[str]
    "accessModes contains all ways the volume can be mounted."
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    "awsElasticBlockStore represents an AWS Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    azureDisk: AzureDiskVolumeSource
    "azureDisk represents an Azure Data Disk mount on the host and bind mount to the pod."
    azureFile: AzureFilePersistentVolumeSource
    "azureFile represents an Azure File Service mount on the host and bind mount to the pod."
    capacity: dict[str, str | float]
    "capacity is the description of the persistent volume's resources and capacity."
    cephfs: CephFSPersistentVolumeSource
    "cephFS represents a Ceph FS mount on the host that shares a pod's lifetime."
    cinder: CinderPersistentVolumeSource
    "cinder represents a cinder volume attached and mounted on kubelets host machine."
    claimRef: ObjectReference
    "claimRef is part of a bi-directional binding between PersistentVolume and PersistentVolumeClaim."
    csi: CSIPersistentVolumeSource
    "csi represents storage that is handled by an external CSI driver."
    fc: FCVolumeSource
    "fc represents a Fibre Channel resource that is attached to a kubelet's host machine and then exposed to the pod."
    flexVolume: FlexPersistentVolumeSource
    "flexVolume represents a generic volume resource that is provisioned/attached using an exec based plugin."
    flocker: FlockerVolumeSource
    "flocker represents a Flocker volume attached to a kubelet's host machine and exposed to the pod for its usage."
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    "gcePersistentDisk represents a GCE Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    glusterfs: GlusterfsPersistentVolumeSource
    "glusterfs represents a Glusterfs volume that is attached to a host and exposed to the pod."
    hostPath: HostPathVolumeSource
    "hostPath represents a directory on the host."
    iscsi: ISCSIPersistentVolumeSource
    "iscsi represents an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    local: LocalVolumeSource
    "local represents directly-attached storage with node affinity"
    mountOptions: list[str]
    "mountOptions is the list of mount options, e.g."
    nfs: NFSVolumeSource
    "nfs represents an NFS mount on the host."
    nodeAffinity: VolumeNodeAffinity
    "nodeAffinity defines constraints that limit what nodes this volume can be accessed from."
    persistentVolumeReclaimPolicy: str
    "persistentVolumeReclaimPolicy defines what happens to a persistent volume when released from its claim."
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    "photonPersistentDisk represents a PhotonController persistent disk attached and mounted on kubelets host machine."
    portworxVolume: PortworxVolumeSource
    "portworxVolume represents a portworx volume attached and mounted on kubelets host machine."
    quobyte: QuobyteVolumeSource
    "quobyte represents a Quobyte mount on the host that shares a pod's lifetime."
    rbd: RBDPersistentVolumeSource
    "rbd represents a Rados Block Device mount on the host that shares a pod's lifetime."
    scaleIO: ScaleIOPersistentVolumeSource
    "scaleIO represents a ScaleIO persistent volume attached and mounted on Kubernetes nodes."
    storageClassName: str
    "storageClassName is the name of StorageClass to which this persistent volume belongs."
    storageos: StorageOSPersistentVolumeSource
    "storageOS represents a StorageOS volume that is attached to the kubelet's host machine and mounted into the pod."
    volumeAttributesClassName: str
    "Name of VolumeAttributesClass to which this persistent volume belongs."
    volumeMode: str
    "volumeMode defines if a volume is intended to be used with a formatted filesystem or to remain in raw block state."
    vsphereVolume: VsphereVirtualDiskVolumeSource
    "vsphereVolume represents a vSphere volume attached and mounted on kubelets host machine."


class PersistentVolumeStatus(TypedDict, total=False):
    "PersistentVolumeStatus is the current status of a persistent volume."
    lastPhaseTransitionTime: str
    "lastPhaseTransitionTime is the time the phase transitioned from one to another and automatically resets to current time everytime a volume phase transitions."
    message: str
    "message is a human-readable message indicating details about why the volume is in this state."
    phase: str
    "phase indicates if a volume is available, bound to a claim, or released by a claim."
    reason: str
    "reason is a brief CamelCase string that describes any failure and is meant for machine parsing and tidy display in the CLI."


class PhotonPersistentDiskVolumeSource(TypedDict, total=False):
    "Represents a Photon Controller persistent disk resource."
    fsType: str
    "fsType is the filesystem type to mount."
    pdID: str
    "pdID is the ID that identifies Photon Controller persistent disk"


class Pod(TypedDict, total=False):
    "Pod is a collection of containers that can run on a host."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Pod"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: PodSpec
    "Specification of the desired behavior of the pod."
    status: PodStatus
    "Most recently observed status of the pod."


class PodAffinity(TypedDict, total=False):
    "Pod affinity is a group of inter pod affinity scheduling rules."
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    "The scheduler will prefer to schedule pods to nodes that satisfy the affinity expressions specified by this field, but it may choose a node that violates one or more of the expressions."
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]
    "If the affinity requirements specified by this field are not met at scheduling time, the pod will not be scheduled onto the node."


class PodAffinityTerm(TypedDict, total=False):
    "Defines a set of pods (namely those matching the labelSelector relative to the given namespace(s)) that this pod should be co-located (affinity) or not co-located (anti-affinity) with, where co-located is defined as running on a node whose value of the label with key <topologyKey> matches that of any node on which a pod of the set of pods is running"
    labelSelector: LabelSelector
    "A label query over a set of resources, in this case pods."
    matchLabelKeys: list[str]
    "MatchLabelKeys is a set of pod label keys to select which pods will be taken into consideration."
    mismatchLabelKeys: list[str]
    "MismatchLabelKeys is a set of pod label keys to select which pods will be taken into consideration."
    namespaceSelector: LabelSelector
    "A label query over the set of namespaces that the term applies to."
    namespaces: list[str]
    "namespaces specifies a static list of namespace names that the term applies to."
    topologyKey: str
    "This pod should be co-located (affinity) or not co-located (anti-affinity) with the pods matching the labelSelector in the specified namespaces, where co-located is defined as running on a node whose value of the label with key topologyKey matches that of any node on which any of the selected pods is running."


class PodAntiAffinity(TypedDict, total=False):
    "Pod anti affinity is a group of inter pod anti affinity scheduling rules."
    preferredDuringSchedulingIgnoredDuringExecution: list[WeightedPodAffinityTerm]
    "The scheduler will prefer to schedule pods to nodes that satisfy the anti-affinity expressions specified by this field, but it may choose a node that violates one or more of the expressions."
    requiredDuringSchedulingIgnoredDuringExecution: list[PodAffinityTerm]
    "If the anti-affinity requirements specified by this field are not met at scheduling time, the pod will not be scheduled onto the node."


class PodCertificateProjection(TypedDict, total=False):
    "PodCertificateProjection provides a private key and X.509 certificate in the pod filesystem."
    certificateChainPath: str
    "Write the certificate chain at this path in the projected volume."
    credentialBundlePath: str
    "Write the credential bundle at this path in the projected volume."
    keyPath: str
    "Write the key at this path in the projected volume."
    keyType: str
    "The type of keypair Kubelet will generate for the pod."
    maxExpirationSeconds: int
    "maxExpirationSeconds is the maximum lifetime permitted for the certificate."
    signerName: str
    "Kubelet's generated CSRs will be addressed to this signer."
    userAnnotations: dict[str, str]
    "userAnnotations allow pod authors to pass additional information to the signer implementation."


class PodCondition(TypedDict, total=False):
    "PodCondition contains details for the current condition of this pod."
    lastProbeTime: str
    "Last time we probed the condition."
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    message: str
    "Human-readable message indicating details about last transition."
    observedGeneration: int
    "If set, this represents the .metadata.generation that the pod condition was set based upon."
    reason: str
    "Unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "Status is the status of the condition."
    type: str
    "Type is the type of the condition."


class PodDNSConfig(TypedDict, total=False):
    "PodDNSConfig defines the DNS parameters of a pod in addition to those generated from DNSPolicy."
    nameservers: list[str]
    "A list of DNS name server IP addresses."
    options: list[PodDNSConfigOption]
    "A list of DNS resolver options."
    searches: list[str]
    "A list of DNS search domains for host-name lookup."


class PodDNSConfigOption(TypedDict, total=False):
    "PodDNSConfigOption defines DNS resolver options of a pod."
    name: str
    "Name is this DNS resolver option's name."
    value: str
    "Value is this DNS resolver option's value."


class PodExtendedResourceClaimStatus(TypedDict, total=False):
    "PodExtendedResourceClaimStatus is stored in the PodStatus for the extended resource requests backed by DRA. It stores the generated name for the corresponding special ResourceClaim created by the scheduler."
    requestMappings: list[ContainerExtendedResourceRequest]
    "RequestMappings identifies the mapping of <container, extended resource backed by DRA> to  device request in the generated ResourceClaim."
    resourceClaimName: str
    "ResourceClaimName is the name of the ResourceClaim that was generated for the Pod in the namespace of the Pod."


class PodIP(TypedDict, total=False):
    "PodIP represents a single IP address allocated to the pod."
    ip: str
    "IP is the IP address assigned to the pod"


class PodOS(TypedDict, total=False):
    "PodOS defines the OS parameters of a pod."
    name: str
    "Name is the name of the operating system."


class PodReadinessGate(TypedDict, total=False):
    "PodReadinessGate contains the reference to a pod condition"
    conditionType: str
    "ConditionType refers to a condition in the pod's condition list with matching type."


class PodResourceClaim(TypedDict, total=False):
    "PodResourceClaim references exactly one ResourceClaim, either directly or by naming a ResourceClaimTemplate which is then turned into a ResourceClaim for the pod."
    name: str
    "Name uniquely identifies this resource claim inside the pod."
    resourceClaimName: str
    "ResourceClaimName is the name of a ResourceClaim object in the same namespace as this pod."
    resourceClaimTemplateName: str
    "ResourceClaimTemplateName is the name of a ResourceClaimTemplate object in the same namespace as this pod."


class PodResourceClaimStatus(TypedDict, total=False):
    "PodResourceClaimStatus is stored in the PodStatus for each PodResourceClaim which references a ResourceClaimTemplate."
    name: str
    "Name uniquely identifies this resource claim inside the pod."
    resourceClaimName: str
    "ResourceClaimName is the name of the ResourceClaim that was generated for the Pod in the namespace of the Pod."


class PodSchedulingGate(TypedDict, total=False):
    "PodSchedulingGate is associated to a Pod to guard its scheduling."
    name: str
    "Name of the scheduling gate."


class PodSchedulingGroup(TypedDict, total=False):
    "PodSchedulingGroup identifies the runtime scheduling group instance that a Pod belongs to."
    podGroupName: str
    "PodGroupName specifies the name of the standalone PodGroup object that represents the runtime instance of this group."


class PodSecurityContext(TypedDict, total=False):
    "PodSecurityContext holds pod-level security attributes and common container settings."
    appArmorProfile: AppArmorProfile
    "appArmorProfile is the AppArmor options to use by the containers in this pod."
    fsGroup: int
    "A special supplemental group that applies to all containers in a pod."
    fsGroupChangePolicy: str
    "fsGroupChangePolicy defines behavior of changing ownership and permission of the volume before being exposed inside Pod."
    runAsGroup: int
    "The GID to run the entrypoint of the container process."
    runAsNonRoot: bool
    "Indicates that the container must run as a non-root user."
    runAsUser: int
    "The UID to run the entrypoint of the container process."
    seLinuxChangePolicy: str
    "seLinuxChangePolicy defines how the container's SELinux label is applied to all volumes used by the Pod."
    seLinuxOptions: SELinuxOptions
    "The SELinux context to be applied to all containers."
    seccompProfile: SeccompProfile
    "The seccomp options to use by the containers in this pod."
    supplementalGroups: list[int]
    "A list of groups applied to the first process run in each container, in addition to the container's primary GID and fsGroup (if specified)."
    supplementalGroupsPolicy: str
    "Defines how supplemental groups of the first container processes are calculated."
    sysctls: list[Sysctl]
    "Sysctls hold a list of namespaced sysctls used for the pod."
    windowsOptions: WindowsSecurityContextOptions
    "The Windows specific settings applied to all containers."


class PodSpec(TypedDict, total=False):
    "PodSpec is a description of a pod."
    activeDeadlineSeconds: int
    "Optional duration in seconds the pod may be active on the node relative to StartTime before the system will actively try to mark it failed and kill associated containers."
    affinity: Affinity
    "If specified, the pod's scheduling constraints"
    automountServiceAccountToken: bool
    "AutomountServiceAccountToken indicates whether a service account token should be automatically mounted."
    containers: list[Container]
    "List of containers belonging to the pod."
    dnsConfig: PodDNSConfig
    "Specifies the DNS parameters of a pod."
    dnsPolicy: str
    "Set DNS policy for the pod."
    enableServiceLinks: bool
    "EnableServiceLinks indicates whether information about services should be injected into pod's environment variables, matching the syntax of Docker links."
    ephemeralContainers: list[EphemeralContainer]
    "List of ephemeral containers run in this pod."
    hostAliases: list[HostAlias]
    "HostAliases is an optional list of hosts and IPs that will be injected into the pod's hosts file if specified."
    hostIPC: bool
    "Use the host's ipc namespace."
    hostNetwork: bool
    "Host networking requested for this pod."
    hostPID: bool
    "Use the host's pid namespace."
    hostUsers: bool
    "Use the host's user namespace."
    hostname: str
    "Specifies the hostname of the Pod If not specified, the pod's hostname will be set to a system-defined value."
    hostnameOverride: str
    "HostnameOverride specifies an explicit override for the pod's hostname as perceived by the pod."
    imagePullSecrets: list[LocalObjectReference]
    "ImagePullSecrets is an optional list of references to secrets in the same namespace to use for pulling any of the images used by this PodSpec."
    initContainers: list[Container]
    "List of initialization containers belonging to the pod."
    nodeName: str
    "NodeName indicates in which node this pod is scheduled."
    nodeSelector: dict[str, str]
    "NodeSelector is a selector which must be true for the pod to fit on a node."
    os: PodOS
    "Specifies the OS of the containers in the pod."
    overhead: dict[str, str | float]
    "Overhead represents the resource overhead associated with running a pod for a given RuntimeClass."
    preemptionPolicy: str
    "PreemptionPolicy is the Policy for preempting pods with lower priority."
    priority: int
    "The priority value."
    priorityClassName: str
    "If specified, indicates the pod's priority."
    readinessGates: list[PodReadinessGate]
    "If specified, all readiness gates will be evaluated for pod readiness."
    resourceClaims: list[PodResourceClaim]
    "ResourceClaims defines which ResourceClaims must be allocated and reserved before the Pod is allowed to start."
    resources: ResourceRequirements
    "Resources is the total amount of CPU and Memory resources required by all containers in the pod."
    restartPolicy: str
    "Restart policy for all containers within the pod."
    runtimeClassName: str
    "RuntimeClassName refers to a RuntimeClass object in the node.k8s.io group, which should be used to run this pod."
    schedulerName: str
    "If specified, the pod will be dispatched by specified scheduler."
    schedulingGates: list[PodSchedulingGate]
    "SchedulingGates is an opaque list of values that if specified will block scheduling the pod."
    schedulingGroup: PodSchedulingGroup
    "SchedulingGroup provides a reference to the immediate scheduling runtime grouping object that this Pod belongs to."
    securityContext: PodSecurityContext
    "SecurityContext holds pod-level security attributes and common container settings."
    serviceAccount: str
    "DeprecatedServiceAccount is a deprecated alias for ServiceAccountName."
    serviceAccountName: str
    "ServiceAccountName is the name of the ServiceAccount to use to run this pod."
    setHostnameAsFQDN: bool
    "If true the pod's hostname will be configured as the pod's FQDN, rather than the leaf name (the default)."
    shareProcessNamespace: bool
    "Share a single process namespace between all of the containers in a pod."
    subdomain: str
    "If specified, the fully qualified Pod hostname will be \"<hostname>.<subdomain>.<pod namespace>.svc.<cluster domain>\"."
    terminationGracePeriodSeconds: int
    "Optional duration in seconds the pod needs to terminate gracefully."
    tolerations: list[Toleration]
    "If specified, the pod's tolerations."
    topologySpreadConstraints: list[TopologySpreadConstraint]
    "TopologySpreadConstraints describes how a group of pods ought to spread across topology domains."
    volumes: list[Volume]
    "List of volumes that can be mounted by containers belonging to the pod."


class PodStatus(TypedDict, total=False):
    "PodStatus represents information about the status of a pod."
    allocatedResources: dict[str, str | float]
    "AllocatedResources is the total requests allocated for this pod by the node."
    conditions: list[PodCondition]
    "Current service state of pod."
    containerStatuses: list[ContainerStatus]
    "Statuses of containers in this pod."
    ephemeralContainerStatuses: list[ContainerStatus]
    "Statuses for any ephemeral containers that have run in this pod."
    extendedResourceClaimStatus: PodExtendedResourceClaimStatus
    "Status of extended resource claim backed by DRA."
    hostIP: str
    "hostIP holds the IP address of the host to which the pod is assigned."
    hostIPs: list[HostIP]
    "hostIPs holds the IP addresses allocated to the host."
    initContainerStatuses: list[ContainerStatus]
    "Statuses of init containers in this pod."
    message: str
    "A human readable message indicating details about why the pod is in this condition."
    nodeAllocatableResourceClaimStatuses: list[NodeAllocatableResourceClaimStatus]
    "NodeAllocatableResourceClaimStatuses contains the status of node-allocatable resources that were allocated for this pod through DRA claims."
    nominatedNodeName: str
    "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods."
    observedGeneration: int
    "If set, this represents the .metadata.generation that the pod status was set based upon."
    phase: str
    "The phase of a Pod is a simple, high-level summary of where the Pod is in its lifecycle."
    podIP: str
    "podIP address allocated to the pod."
    podIPs: list[PodIP]
    "podIPs holds the IP addresses allocated to the pod."
    qosClass: str
    "The Quality of Service (QOS) classification assigned to the pod based on resource requirements See PodQOSClass type for available QOS classes More info: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/#quality-of-service-classes"
    reason: str
    "A brief CamelCase message indicating details about why the pod is in this state."
    resize: str
    "Status of resources resize desired for pod's containers."
    resourceClaimStatuses: list[PodResourceClaimStatus]
    "Status of resource claims."
    resources: ResourceRequirements
    "Resources represents the compute resource requests and limits that have been applied at the pod level if pod-level requests or limits are set in PodSpec.Resources"
    startTime: str
    "RFC 3339 date and time at which the object was acknowledged by the Kubelet."


class PodTemplate(TypedDict, total=False):
    "PodTemplate describes a template for creating copies of a predefined pod."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["PodTemplate"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    template: PodTemplateSpec
    "Template defines the pods that will be created from this pod template."


class PodTemplateSpec(TypedDict, total=False):
    "PodTemplateSpec describes the data a pod should have when created from a template"
    metadata: ObjectMeta
    "Standard object's metadata."
    spec: PodSpec
    "Specification of the desired behavior of the pod."


class PortStatus(TypedDict, total=False):
    "PortStatus represents the error condition of a service port"
    error: str
    "Error is to record the problem with the service port The format of the error shall comply with the following rules: - built-in error values shall be specified in this file and those shall use"
    port: int
    "Port is the port number of the service port of which status is recorded here"
    protocol: str
    "Protocol is the protocol of the service port of which status is recorded here The supported values are: \"TCP\", \"UDP\", \"SCTP\""


class PortworxVolumeSource(TypedDict, total=False):
    "PortworxVolumeSource represents a Portworx volume resource."
    fsType: str
    "fSType represents the filesystem type to mount Must be a filesystem type supported by the host operating system."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    volumeID: str
    "volumeID uniquely identifies a Portworx volume"


class PreferredSchedulingTerm(TypedDict, total=False):
    "An empty preferred scheduling term matches all objects with implicit weight 0 (i.e."
    preference: NodeSelectorTerm
    "A node selector term, associated with the corresponding weight."
    weight: int
    "Weight associated with matching the corresponding nodeSelectorTerm, in the range 1-100."


class Probe(TypedDict, total=False):
    "Probe describes a health check to be performed against a container to determine whether it is alive or ready to receive traffic."
    exec: ExecAction
    "Exec specifies a command to execute in the container."
    failureThreshold: int
    "Minimum consecutive failures for the probe to be considered failed after having succeeded."
    grpc: GRPCAction
    "GRPC specifies a GRPC HealthCheckRequest."
    httpGet: HTTPGetAction
    "HTTPGet specifies an HTTP GET request to perform."
    initialDelaySeconds: int
    "Number of seconds after the container has started before liveness probes are initiated."
    periodSeconds: int
    "How often (in seconds) to perform the probe."
    successThreshold: int
    "Minimum consecutive successes for the probe to be considered successful after having failed."
    tcpSocket: TCPSocketAction
    "TCPSocket specifies a connection to a TCP port."
    terminationGracePeriodSeconds: int
    "Optional duration in seconds the pod needs to terminate gracefully upon probe failure."
    timeoutSeconds: int
    "Number of seconds after which the probe times out."


class ProjectedVolumeSource(TypedDict, total=False):
    "Represents a projected volume source"
    defaultMode: int
    "defaultMode are the mode bits used to set permissions on created files by default."
    sources: list[VolumeProjection]
    "sources is the list of volume projections."


class QuobyteVolumeSource(TypedDict, total=False):
    "Represents a Quobyte mount that lasts the lifetime of a pod."
    group: str
    "group to map volume access to Default is no group"
    readOnly: bool
    "readOnly here will force the Quobyte volume to be mounted with read-only permissions."
    registry: str
    "registry represents a single or multiple Quobyte Registry services specified as a string as host:port pair (multiple entries are separated with commas) which acts as the central registry for volumes"
    tenant: str
    "tenant owning the given Quobyte volume in the Backend Used with dynamically provisioned Quobyte volumes, value is set by the plugin"
    user: str
    "user to map volume access to Defaults to serivceaccount user"
    volume: str
    "volume is a string that references an already created Quobyte volume by name."


class RBDPersistentVolumeSource(TypedDict, total=False):
    "Represents a Rados Block Device mount that lasts the lifetime of a pod."
    fsType: str
    "fsType is the filesystem type of the volume that you want to mount."
    image: str
    "image is the rados image name."
    keyring: str
    "keyring is the path to key ring for RBDUser."
    monitors: list[str]
    "monitors is a collection of Ceph monitors."
    pool: str
    "pool is the rados pool name."
    readOnly: bool
    "readOnly here will force the ReadOnly setting in VolumeMounts."
    secretRef: SecretReference
    "secretRef is name of the authentication secret for RBDUser."
    user: str
    "user is the rados user name."


class RBDVolumeSource(TypedDict, total=False):
    "Represents a Rados Block Device mount that lasts the lifetime of a pod."
    fsType: str
    "fsType is the filesystem type of the volume that you want to mount."
    image: str
    "image is the rados image name."
    keyring: str
    "keyring is the path to key ring for RBDUser."
    monitors: list[str]
    "monitors is a collection of Ceph monitors."
    pool: str
    "pool is the rados pool name."
    readOnly: bool
    "readOnly here will force the ReadOnly setting in VolumeMounts."
    secretRef: LocalObjectReference
    "secretRef is name of the authentication secret for RBDUser."
    user: str
    "user is the rados user name."


class ReplicationController(TypedDict, total=False):
    "ReplicationController represents the configuration of a replication controller."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ReplicationController"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "If the Labels of a ReplicationController are empty, they are defaulted to be the same as the Pod(s) that the replication controller manages."
    spec: ReplicationControllerSpec
    "Spec defines the specification of the desired behavior of the replication controller."
    status: ReplicationControllerStatus
    "Status is the most recently observed status of the replication controller."


class ReplicationControllerCondition(TypedDict, total=False):
    "ReplicationControllerCondition describes the state of a replication controller at a certain point."
    lastTransitionTime: str
    "The last time the condition transitioned from one status to another."
    message: str
    "A human readable message indicating details about the transition."
    reason: str
    "The reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of replication controller condition."


class ReplicationControllerSpec(TypedDict, total=False):
    "ReplicationControllerSpec is the specification of a replication controller."
    minReadySeconds: int
    "Minimum number of seconds for which a newly created pod should be ready without any of its container crashing, for it to be considered available."
    replicas: int
    "Replicas is the number of desired replicas."
    selector: dict[str, str]
    "Selector is a label query over pods that should match the Replicas count."
    template: PodTemplateSpec
    "Template is the object that describes the pod that will be created if insufficient replicas are detected."


class ReplicationControllerStatus(TypedDict, total=False):
    "ReplicationControllerStatus represents the current status of a replication controller."
    availableReplicas: int
    "The number of available replicas (ready for at least minReadySeconds) for this replication controller."
    conditions: list[ReplicationControllerCondition]
    "Represents the latest available observations of a replication controller's current state."
    fullyLabeledReplicas: int
    "The number of pods that have labels matching the labels of the pod template of the replication controller."
    observedGeneration: int
    "ObservedGeneration reflects the generation of the most recently observed replication controller."
    readyReplicas: int
    "The number of ready replicas for this replication controller."
    replicas: int
    "Replicas is the most recently observed number of replicas."


class ResourceClaim(TypedDict, total=False):
    "ResourceClaim references one entry in PodSpec.ResourceClaims."
    name: str
    "Name must match the name of one entry in pod.spec.resourceClaims of the Pod where this field is used."
    request: str
    "Request is the name chosen for a request in the referenced claim."


class ResourceFieldSelector(TypedDict, total=False):
    "ResourceFieldSelector represents container resources (cpu, memory) and their output format"
    containerName: str
    "Container name: required for volumes, optional for env vars"
    divisor: str | float
    "Specifies the output format of the exposed resources, defaults to \"1\""
    resource: str
    "Required: resource to select"


class ResourceHealth(TypedDict, total=False):
    "ResourceHealth represents the health of a resource."
    health: str
    "Health of the resource."
    message: str
    "Message provides human-readable context for Health (e.g."
    resourceID: str
    "ResourceID is the unique identifier of the resource."


class ResourceQuota(TypedDict, total=False):
    "ResourceQuota sets aggregate quota restrictions enforced per namespace"
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ResourceQuota"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: ResourceQuotaSpec
    "Spec defines the desired quota."
    status: ResourceQuotaStatus
    "Status defines the actual enforced quota and its current usage."


class ResourceQuotaSpec(TypedDict, total=False):
    "ResourceQuotaSpec defines the desired hard limits to enforce for Quota."
    hard: dict[str, str | float]
    "hard is the set of desired hard limits for each named resource."
    scopeSelector: ScopeSelector
    "scopeSelector is also a collection of filters like scopes that must match each object tracked by a quota but expressed using ScopeSelectorOperator in combination with possible values."
    scopes: list[str]
    "A collection of filters that must match each object tracked by a quota."


class ResourceQuotaStatus(TypedDict, total=False):
    "ResourceQuotaStatus defines the enforced hard limits and observed use."
    hard: dict[str, str | float]
    "Hard is the set of enforced hard limits for each named resource."
    used: dict[str, str | float]
    "Used is the current observed total usage of the resource in the namespace."


class ResourceRequirements(TypedDict, total=False):
    "ResourceRequirements describes the compute resource requirements."
    claims: list[ResourceClaim]
    "Claims lists the names of resources, defined in spec.resourceClaims, that are used by this container."
    limits: dict[str, str | float]
    "Limits describes the maximum amount of compute resources allowed."
    requests: dict[str, str | float]
    "Requests describes the minimum amount of compute resources required."


class ResourceStatus(TypedDict, total=False):
    "ResourceStatus represents the status of a single resource allocated to a Pod."
    name: str
    "Name of the resource."
    resources: list[ResourceHealth]
    "List of unique resources health."


class SELinuxOptions(TypedDict, total=False):
    "SELinuxOptions are the labels to be applied to the container"
    level: str
    "Level is SELinux level label that applies to the container."
    role: str
    "Role is a SELinux role label that applies to the container."
    type: str
    "Type is a SELinux type label that applies to the container."
    user: str
    "User is a SELinux user label that applies to the container."


class ScaleIOPersistentVolumeSource(TypedDict, total=False):
    "ScaleIOPersistentVolumeSource represents a persistent ScaleIO volume"
    fsType: str
    "fsType is the filesystem type to mount."
    gateway: str
    "gateway is the host address of the ScaleIO API Gateway."
    protectionDomain: str
    "protectionDomain is the name of the ScaleIO Protection Domain for the configured storage."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretRef: SecretReference
    "secretRef references to the secret for ScaleIO user and other sensitive information."
    sslEnabled: bool
    "sslEnabled is the flag to enable/disable SSL communication with Gateway, default false"
    storageMode: str
    "storageMode indicates whether the storage for a volume should be ThickProvisioned or ThinProvisioned."
    storagePool: str
    "storagePool is the ScaleIO Storage Pool associated with the protection domain."
    system: str
    "system is the name of the storage system as configured in ScaleIO."
    volumeName: str
    "volumeName is the name of a volume already created in the ScaleIO system that is associated with this volume source."


class ScaleIOVolumeSource(TypedDict, total=False):
    "ScaleIOVolumeSource represents a persistent ScaleIO volume"
    fsType: str
    "fsType is the filesystem type to mount."
    gateway: str
    "gateway is the host address of the ScaleIO API Gateway."
    protectionDomain: str
    "protectionDomain is the name of the ScaleIO Protection Domain for the configured storage."
    readOnly: bool
    "readOnly Defaults to false (read/write)."
    secretRef: LocalObjectReference
    "secretRef references to the secret for ScaleIO user and other sensitive information."
    sslEnabled: bool
    "sslEnabled Flag enable/disable SSL communication with Gateway, default false"
    storageMode: str
    "storageMode indicates whether the storage for a volume should be ThickProvisioned or ThinProvisioned."
    storagePool: str
    "storagePool is the ScaleIO Storage Pool associated with the protection domain."
    system: str
    "system is the name of the storage system as configured in ScaleIO."
    volumeName: str
    "volumeName is the name of a volume already created in the ScaleIO system that is associated with this volume source."


class ScopeSelector(TypedDict, total=False):
    "A scope selector represents the AND of the selectors represented by the scoped-resource selector requirements."
    matchExpressions: list[ScopedResourceSelectorRequirement]
    "A list of scope selector requirements by scope of the resources."


class ScopedResourceSelectorRequirement(TypedDict, total=False):
    "A scoped-resource selector requirement is a selector that contains values, a scope name, and an operator that relates the scope name and values."
    operator: str
    "Represents a scope's relationship to a set of values."
    scopeName: str
    "The name of the scope that the selector applies to."
    values: list[str]
    "An array of string values."


class SeccompProfile(TypedDict, total=False):
    "SeccompProfile defines a pod/container's seccomp profile settings."
    localhostProfile: str
    "localhostProfile indicates a profile defined in a file on the node should be used."
    type: str
    "type indicates which kind of seccomp profile will be applied."


class Secret(TypedDict, total=False):
    "Secret holds secret data of a certain type."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    data: dict[str, str]
    "Data contains the secret data."
    immutable: bool
    "Immutable, if set to true, ensures that data stored in the Secret cannot be updated (only object metadata can be modified)."
    kind: Required[Literal["Secret"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    stringData: dict[str, str]
    "stringData allows specifying non-binary secret data in string form."
    type: str
    "Used to facilitate programmatic handling of secret data."


class SecretEnvSource(TypedDict, total=False):
    "SecretEnvSource selects a Secret to populate the environment variables with."
    name: str
    "Name of the referent."
    optional: bool
    "Specify whether the Secret must be defined"


class SecretKeySelector(TypedDict, total=False):
    "SecretKeySelector selects a key of a Secret."
    key: str
    "The key of the secret to select from."
    name: str
    "Name of the referent."
    optional: bool
    "Specify whether the Secret or its key must be defined"


class SecretProjection(TypedDict, total=False):
    "Adapts a secret into a projected volume."
    items: list[KeyToPath]
    "items if unspecified, each key-value pair in the Data field of the referenced Secret will be projected into the volume as a file whose name is the key and content is the value."
    name: str
    "Name of the referent."
    optional: bool
    "optional field specify whether the Secret or its key must be defined"


class SecretReference(TypedDict, total=False):
    "SecretReference represents a Secret Reference."
    name: str
    "name is unique within a namespace to reference a secret resource."
    namespace: str
    "namespace defines the space within which the secret name must be unique."


class SecretVolumeSource(TypedDict, total=False):
    "Adapts a Secret into a volume."
    defaultMode: int
    "defaultMode is Optional: mode bits used to set permissions on created files by default."
    items: list[KeyToPath]
    "items If unspecified, each key-value pair in the Data field of the referenced Secret will be projected into the volume as a file whose name is the key and content is the value."
    optional: bool
    "optional field specify whether the Secret or its keys must be defined"
    secretName: str
    "secretName is the name of the secret in the pod's namespace to use."


class SecurityContext(TypedDict, total=False):
    "SecurityContext holds security configuration that will be applied to a container."
    allowPrivilegeEscalation: bool
    "AllowPrivilegeEscalation controls whether a process can gain more privileges than its parent process."
    appArmorProfile: AppArmorProfile
    "appArmorProfile is the AppArmor options to use by this container."
    capabilities: Capabilities
    "The capabilities to add/drop when running containers."
    privileged: bool
    "Run container in privileged mode."
    procMount: str
    "procMount denotes the type of proc mount to use for the containers."
    readOnlyRootFilesystem: bool
    "Whether this container has a read-only root filesystem."
    runAsGroup: int
    "The GID to run the entrypoint of the container process."
    runAsNonRoot: bool
    "Indicates that the container must run as a non-root user."
    runAsUser: int
    "The UID to run the entrypoint of the container process."
    seLinuxOptions: SELinuxOptions
    "The SELinux context to be applied to the container."
    seccompProfile: SeccompProfile
    "The seccomp options to use by this container."
    windowsOptions: WindowsSecurityContextOptions
    "The Windows specific settings applied to all containers."


class Service(TypedDict, total=False):
    "Service is a named abstraction of software service (for example, mysql) consisting of local port (for example 3306) that the proxy listens on, and the selector that determines which pods will answer requests sent through the proxy."
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Service"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: ServiceSpec
    "Spec defines the behavior of a service."
    status: ServiceStatus
    "Most recently observed status of the service."


class ServiceAccount(TypedDict, total=False):
    "ServiceAccount binds together: * a name, understood by users, and perhaps by peripheral systems, for an identity * a principal that can be authenticated and authorized * a set of secrets"
    apiVersion: Required[Literal["v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    automountServiceAccountToken: bool
    "AutomountServiceAccountToken indicates whether pods running as this service account should have an API token automatically mounted."
    imagePullSecrets: list[LocalObjectReference]
    "ImagePullSecrets is a list of references to secrets in the same namespace to use for pulling any images in pods that reference this ServiceAccount."
    kind: Required[Literal["ServiceAccount"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    secrets: list[ObjectReference]
    "Secrets is a list of the secrets in the same namespace that pods running using this ServiceAccount are allowed to use."


class ServiceAccountTokenProjection(TypedDict, total=False):
    "ServiceAccountTokenProjection represents a projected service account token volume."
    audience: str
    "audience is the intended audience of the token."
    expirationSeconds: int
    "expirationSeconds is the requested duration of validity of the service account token."
    path: str
    "path is the path relative to the mount point of the file to project the token into."


class ServicePort(TypedDict, total=False):
    "ServicePort contains information on service's port."
    appProtocol: str
    "The application protocol for this port."
    name: str
    "The name of this port within the service."
    nodePort: int
    "The port on each node on which this service is exposed when type is NodePort or LoadBalancer."
    port: int
    "The port that will be exposed by this service."
    protocol: str
    "The IP protocol for this port."
    targetPort: int | str
    "Number or name of the port to access on the pods targeted by the service."


class ServiceSpec(TypedDict, total=False):
    "ServiceSpec describes the attributes that a user creates on a service."
    allocateLoadBalancerNodePorts: bool
    "allocateLoadBalancerNodePorts defines if NodePorts will be automatically allocated for services with type LoadBalancer."
    clusterIP: str
    "clusterIP is the IP address of the service and is usually assigned randomly."
    clusterIPs: list[str]
    "ClusterIPs is a list of IP addresses assigned to this service, and are usually assigned randomly."
    externalIPs: list[str]
    "externalIPs is a list of IP addresses for which nodes in the cluster will also accept traffic for this service."
    externalName: str
    "externalName is the external reference that discovery mechanisms will return as an alias for this service (e.g."
    externalTrafficPolicy: str
    "externalTrafficPolicy describes how nodes distribute service traffic they receive on one of the Service's \"externally-facing\" addresses (NodePorts, ExternalIPs, and LoadBalancer IPs)."
    healthCheckNodePort: int
    "healthCheckNodePort specifies the healthcheck nodePort for the service."
    internalTrafficPolicy: str
    "InternalTrafficPolicy describes how nodes distribute service traffic they receive on the ClusterIP. If set to \"Local\", the proxy will assume that pods only want to talk to endpoints of the service on the same node as the pod, dropping the traffic if there are no local endpoints."
    ipFamilies: list[str]
    "IPFamilies is a list of IP families (e.g."
    ipFamilyPolicy: str
    "IPFamilyPolicy represents the dual-stack-ness requested or required by this Service."
    loadBalancerClass: str
    "loadBalancerClass is the class of the load balancer implementation this Service belongs to."
    loadBalancerIP: str
    "Only applies to Service Type: LoadBalancer."
    loadBalancerSourceRanges: list[str]
    "If specified and supported by the platform, this will restrict traffic through the cloud-provider load-balancer will be restricted to the specified client IPs."
    ports: list[ServicePort]
    "The list of ports that are exposed by this service."
    publishNotReadyAddresses: bool
    "publishNotReadyAddresses indicates that any agent which deals with endpoints for this Service should disregard any indications of ready/not-ready."
    selector: dict[str, str]
    "Route service traffic to pods with label keys and values matching this selector."
    sessionAffinity: str
    "Supports \"ClientIP\" and \"None\"."
    sessionAffinityConfig: SessionAffinityConfig
    "sessionAffinityConfig contains the configurations of session affinity."
    trafficDistribution: str
    "TrafficDistribution offers a way to express preferences for how traffic is distributed to Service endpoints."
    type: str
    "type determines how the Service is exposed."


class ServiceStatus(TypedDict, total=False):
    "ServiceStatus represents the current status of a service."
    conditions: list[Condition]
    "Current service state"
    loadBalancer: LoadBalancerStatus
    "LoadBalancer contains the current status of the load-balancer, if one is present."


class SessionAffinityConfig(TypedDict, total=False):
    "SessionAffinityConfig represents the configurations of session affinity."
    clientIP: ClientIPConfig
    "clientIP contains the configurations of Client IP based session affinity."


class SleepAction(TypedDict, total=False):
    "SleepAction describes a \"sleep\" action."
    seconds: int
    "Seconds is the number of seconds to sleep."


class StorageOSPersistentVolumeSource(TypedDict, total=False):
    "Represents a StorageOS persistent volume resource."
    fsType: str
    "fsType is the filesystem type to mount."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretRef: ObjectReference
    "secretRef specifies the secret to use for obtaining the StorageOS API credentials."
    volumeName: str
    "volumeName is the human-readable name of the StorageOS volume."
    volumeNamespace: str
    "volumeNamespace specifies the scope of the volume within StorageOS.  If no namespace is specified then the Pod's namespace will be used."


class StorageOSVolumeSource(TypedDict, total=False):
    "Represents a StorageOS persistent volume resource."
    fsType: str
    "fsType is the filesystem type to mount."
    readOnly: bool
    "readOnly defaults to false (read/write)."
    secretRef: LocalObjectReference
    "secretRef specifies the secret to use for obtaining the StorageOS API credentials."
    volumeName: str
    "volumeName is the human-readable name of the StorageOS volume."
    volumeNamespace: str
    "volumeNamespace specifies the scope of the volume within StorageOS.  If no namespace is specified then the Pod's namespace will be used."


class Sysctl(TypedDict, total=False):
    "Sysctl defines a kernel parameter to be set"
    name: str
    "Name of a property to set"
    value: str
    "Value of a property to set"


class TCPSocketAction(TypedDict, total=False):
    "TCPSocketAction describes an action based on opening a socket"
    host: str
    "Optional: Host name to connect to, defaults to the pod IP."
    port: int | str
    "Number or name of the port to access on the container."


class Taint(TypedDict, total=False):
    "The node this Taint is attached to has the \"effect\" on any pod that does not tolerate the Taint."
    effect: str
    "Required."
    key: str
    "Required."
    timeAdded: str
    "TimeAdded represents the time at which the taint was added."
    value: str
    "The taint value corresponding to the taint key."


class Toleration(TypedDict, total=False):
    "The pod this Toleration is attached to tolerates any taint that matches the triple <key,value,effect> using the matching operator <operator>."
    effect: str
    "Effect indicates the taint effect to match."
    key: str
    "Key is the taint key that the toleration applies to."
    operator: str
    "Operator represents a key's relationship to the value."
    tolerationSeconds: int
    "TolerationSeconds represents the period of time the toleration (which must be of effect NoExecute, otherwise this field is ignored) tolerates the taint."
    value: str
    "Value is the taint value the toleration matches to."


class TopologySelectorLabelRequirement(TypedDict, total=False):
    "A topology selector requirement is a selector that matches given label."
    key: str
    "The label key that the selector applies to."
    values: list[str]
    "An array of string values."


class TopologySelectorTerm(TypedDict, total=False):
    "A topology selector term represents the result of label queries."
    matchLabelExpressions: list[TopologySelectorLabelRequirement]
    "A list of topology selector requirements by labels."


class TopologySpreadConstraint(TypedDict, total=False):
    "TopologySpreadConstraint specifies how to spread matching pods among the given topology."
    labelSelector: LabelSelector
    "LabelSelector is used to find matching pods."
    matchLabelKeys: list[str]
    "MatchLabelKeys is a set of pod label keys to select the pods over which spreading will be calculated."
    maxSkew: int
    "MaxSkew describes the degree to which pods may be unevenly distributed."
    minDomains: int
    "MinDomains indicates a minimum number of eligible domains."
    nodeAffinityPolicy: str
    "NodeAffinityPolicy indicates how we will treat Pod's nodeAffinity/nodeSelector when calculating pod topology spread skew."
    nodeTaintsPolicy: str
    "NodeTaintsPolicy indicates how we will treat node taints when calculating pod topology spread skew."
    topologyKey: str
    "TopologyKey is the key of node labels."
    whenUnsatisfiable: str
    "WhenUnsatisfiable indicates how to deal with a pod if it doesn't satisfy the spread constraint."


class TypedLocalObjectReference(TypedDict, total=False):
    "TypedLocalObjectReference contains enough information to let you locate the typed referenced object inside the same namespace."
    apiGroup: str
    "APIGroup is the group for the resource being referenced."
    kind: str
    "Kind is the type of resource being referenced"
    name: str
    "Name is the name of resource being referenced"


class TypedObjectReference(TypedDict, total=False):
    "TypedObjectReference contains enough information to let you locate the typed referenced object"
    apiGroup: str
    "APIGroup is the group for the resource being referenced."
    kind: str
    "Kind is the type of resource being referenced"
    name: str
    "Name is the name of resource being referenced"
    namespace: str
    "Namespace is the namespace of resource being referenced Note that when a namespace is specified, a gateway.networking.k8s.io/ReferenceGrant object is required in the referent namespace to allow that namespace's owner to accept the reference."


class Volume(TypedDict, total=False):
    "Volume represents a named volume in a pod that may be accessed by any container in the pod."
    awsElasticBlockStore: AWSElasticBlockStoreVolumeSource
    "awsElasticBlockStore represents an AWS Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    azureDisk: AzureDiskVolumeSource
    "azureDisk represents an Azure Data Disk mount on the host and bind mount to the pod."
    azureFile: AzureFileVolumeSource
    "azureFile represents an Azure File Service mount on the host and bind mount to the pod."
    cephfs: CephFSVolumeSource
    "cephFS represents a Ceph FS mount on the host that shares a pod's lifetime."
    cinder: CinderVolumeSource
    "cinder represents a cinder volume attached and mounted on kubelets host machine."
    configMap: ConfigMapVolumeSource
    "configMap represents a configMap that should populate this volume"
    csi: CSIVolumeSource
    "csi (Container Storage Interface) represents ephemeral storage that is handled by certain external CSI drivers."
    downwardAPI: DownwardAPIVolumeSource
    "downwardAPI represents downward API about the pod that should populate this volume"
    emptyDir: EmptyDirVolumeSource
    "emptyDir represents a temporary directory that shares a pod's lifetime."
    ephemeral: EphemeralVolumeSource
    "ephemeral represents a volume that is handled by a cluster storage driver."
    fc: FCVolumeSource
    "fc represents a Fibre Channel resource that is attached to a kubelet's host machine and then exposed to the pod."
    flexVolume: FlexVolumeSource
    "flexVolume represents a generic volume resource that is provisioned/attached using an exec based plugin."
    flocker: FlockerVolumeSource
    "flocker represents a Flocker volume attached to a kubelet's host machine."
    gcePersistentDisk: GCEPersistentDiskVolumeSource
    "gcePersistentDisk represents a GCE Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    gitRepo: GitRepoVolumeSource
    "gitRepo represents a git repository at a particular revision."
    glusterfs: GlusterfsVolumeSource
    "glusterfs represents a Glusterfs mount on the host that shares a pod's lifetime."
    hostPath: HostPathVolumeSource
    "hostPath represents a pre-existing file or directory on the host machine that is directly exposed to the container."
    image: ImageVolumeSource
    "image represents an OCI object (a container image or artifact) pulled and mounted on the kubelet's host machine."
    iscsi: ISCSIVolumeSource
    "iscsi represents an ISCSI Disk resource that is attached to a kubelet's host machine and then exposed to the pod."
    name: str
    "name of the volume."
    nfs: NFSVolumeSource
    "nfs represents an NFS mount on the host that shares a pod's lifetime More info: https://kubernetes.io/docs/concepts/storage/volumes#nfs"
    persistentVolumeClaim: PersistentVolumeClaimVolumeSource
    "persistentVolumeClaimVolumeSource represents a reference to a PersistentVolumeClaim in the same namespace."
    photonPersistentDisk: PhotonPersistentDiskVolumeSource
    "photonPersistentDisk represents a PhotonController persistent disk attached and mounted on kubelets host machine."
    portworxVolume: PortworxVolumeSource
    "portworxVolume represents a portworx volume attached and mounted on kubelets host machine."
    projected: ProjectedVolumeSource
    "projected items for all in one resources secrets, configmaps, and downward API"
    quobyte: QuobyteVolumeSource
    "quobyte represents a Quobyte mount on the host that shares a pod's lifetime."
    rbd: RBDVolumeSource
    "rbd represents a Rados Block Device mount on the host that shares a pod's lifetime."
    scaleIO: ScaleIOVolumeSource
    "scaleIO represents a ScaleIO persistent volume attached and mounted on Kubernetes nodes."
    secret: SecretVolumeSource
    "secret represents a secret that should populate this volume."
    storageos: StorageOSVolumeSource
    "storageOS represents a StorageOS volume attached and mounted on Kubernetes nodes."
    vsphereVolume: VsphereVirtualDiskVolumeSource
    "vsphereVolume represents a vSphere volume attached and mounted on kubelets host machine."


class VolumeDevice(TypedDict, total=False):
    "volumeDevice describes a mapping of a raw block device within a container."
    devicePath: str
    "devicePath is the path inside of the container that the device will be mapped to."
    name: str
    "name must match the name of a persistentVolumeClaim in the pod"


class VolumeMount(TypedDict, total=False):
    "VolumeMount describes a mounting of a Volume within a container."
    mountPath: str
    "Path within the container at which the volume should be mounted."
    mountPropagation: str
    "mountPropagation determines how mounts are propagated from the host to container and the other way around."
    name: str
    "This must match the Name of a Volume."
    readOnly: bool
    "Mounted read-only if true, read-write otherwise (false or unspecified)."
    recursiveReadOnly: str
    "RecursiveReadOnly specifies whether read-only mounts should be handled recursively."
    subPath: str
    "Path within the volume from which the container's volume should be mounted."
    subPathExpr: str
    "Expanded path within the volume from which the container's volume should be mounted."


class VolumeMountStatus(TypedDict, total=False):
    "VolumeMountStatus shows status of volume mounts."
    mountPath: str
    "MountPath corresponds to the original VolumeMount."
    name: str
    "Name corresponds to the name of the original VolumeMount."
    readOnly: bool
    "ReadOnly corresponds to the original VolumeMount."
    recursiveReadOnly: str
    "RecursiveReadOnly must be set to Disabled, Enabled, or unspecified (for non-readonly mounts)."
    volumeStatus: VolumeStatus
    "volumeStatus represents volume-type-specific status about the mounted volume."


class VolumeNodeAffinity(TypedDict, total=False):
    "VolumeNodeAffinity defines constraints that limit what nodes this volume can be accessed from."
    required: NodeSelector
    "required specifies hard node constraints that must be met."


class VolumeProjection(TypedDict, total=False):
    "Projection that may be projected along with other supported volume types."
    clusterTrustBundle: ClusterTrustBundleProjection
    "ClusterTrustBundle allows a pod to access the `.spec.trustBundle` field of ClusterTrustBundle objects in an auto-updating file."
    configMap: ConfigMapProjection
    "configMap information about the configMap data to project"
    downwardAPI: DownwardAPIProjection
    "downwardAPI information about the downwardAPI data to project"
    podCertificate: PodCertificateProjection
    "Projects an auto-rotating credential bundle (private key and certificate chain) that the pod can use either as a TLS client or server."
    secret: SecretProjection
    "secret information about the secret data to project"
    serviceAccountToken: ServiceAccountTokenProjection
    "serviceAccountToken is information about the serviceAccountToken data to project"


class VolumeResourceRequirements(TypedDict, total=False):
    "VolumeResourceRequirements describes the storage resource requirements for a volume."
    limits: dict[str, str | float]
    "Limits describes the maximum amount of compute resources allowed."
    requests: dict[str, str | float]
    "Requests describes the minimum amount of compute resources required."


class VolumeStatus(TypedDict, total=False):
    "VolumeStatus represents the status of a mounted volume."
    image: ImageVolumeStatus
    "image represents an OCI object (a container image or artifact) pulled and mounted on the kubelet's host machine."


class VsphereVirtualDiskVolumeSource(TypedDict, total=False):
    "Represents a vSphere volume resource."
    fsType: str
    "fsType is filesystem type to mount."
    storagePolicyID: str
    "storagePolicyID is the storage Policy Based Management (SPBM) profile ID associated with the StoragePolicyName."
    storagePolicyName: str
    "storagePolicyName is the storage Policy Based Management (SPBM) profile name."
    volumePath: str
    "volumePath is the path that identifies vSphere volume vmdk"


class WeightedPodAffinityTerm(TypedDict, total=False):
    "The weights of all of the matched WeightedPodAffinityTerm fields are added per-node to find the most preferred node(s)"
    podAffinityTerm: PodAffinityTerm
    "Required."
    weight: int
    "weight associated with matching the corresponding podAffinityTerm, in the range 1-100."


class WindowsSecurityContextOptions(TypedDict, total=False):
    "WindowsSecurityContextOptions contain Windows-specific options and credentials."
    gmsaCredentialSpec: str
    "GMSACredentialSpec is where the GMSA admission webhook (https://github.com/kubernetes-sigs/windows-gmsa) inlines the contents of the GMSA credential spec named by the GMSACredentialSpecName field."
    gmsaCredentialSpecName: str
    "GMSACredentialSpecName is the name of the GMSA credential spec to use."
    hostProcess: bool
    "HostProcess determines if a container should be run as a 'Host Process' container."
    runAsUserName: str
    "The UserName in Windows to run the entrypoint of the container process."
