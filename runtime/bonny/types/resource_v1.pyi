"""Types of resource/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Any, Literal, Required, TypedDict

from .core_v1 import NodeSelector
from .meta_v1 import Condition, NamedMeta, ObjectMeta

class AllocatedDeviceStatus(TypedDict, total=False):
    "AllocatedDeviceStatus contains the status of an allocated device, if the driver chooses to report it."
    conditions: list[Condition]
    "Conditions contains the latest observation of the device's state."
    data: dict[str, Any]
    "Data contains arbitrary driver-specific data."
    device: str
    "Device references one device instance via its name in the driver's resource pool."
    driver: str
    "Driver specifies the name of the DRA driver whose kubelet plugin should be invoked to process the allocation once the claim is needed on a node."
    networkData: NetworkDeviceData
    "NetworkData contains network-related information specific to the device."
    pool: str
    "This name together with the driver name and the device name field identify which device was allocated (`<driver name>/<pool name>/<device name>`)."
    shareID: str
    "ShareID uniquely identifies an individual allocation share of the device."


class AllocationResult(TypedDict, total=False):
    "AllocationResult contains attributes of an allocated resource."
    allocationTimestamp: str
    "AllocationTimestamp stores the time when the resources were allocated."
    devices: DeviceAllocationResult
    "Devices is the result of allocating devices."
    nodeSelector: NodeSelector
    "NodeSelector defines where the allocated resources are available."


class CELDeviceSelector(TypedDict, total=False):
    "CELDeviceSelector contains a CEL expression for selecting a device."
    expression: str
    "Expression is a CEL expression which evaluates a single device."


class CapacityRequestPolicy(TypedDict, total=False):
    "CapacityRequestPolicy defines how requests consume device capacity."
    default: str | float
    "Default specifies how much of this capacity is consumed by a request that does not contain an entry for it in DeviceRequest's Capacity."
    validRange: CapacityRequestPolicyRange
    "ValidRange defines an acceptable quantity value range in consuming requests."
    validValues: list[str | float]
    "ValidValues defines a set of acceptable quantity values in consuming requests."


class CapacityRequestPolicyRange(TypedDict, total=False):
    "CapacityRequestPolicyRange defines a valid range for consumable capacity values."
    max: str | float
    "Max defines the upper limit for capacity that can be requested."
    min: str | float
    "Min specifies the minimum capacity allowed for a consumption request."
    step: str | float
    "Step defines the step size between valid capacity amounts within the range."


class CapacityRequirements(TypedDict, total=False):
    "CapacityRequirements defines the capacity requirements for a specific device request."
    requests: dict[str, str | float]
    "Requests represent individual device resource requests for distinct resources, all of which must be provided by the device."


class Counter(TypedDict, total=False):
    "Counter describes a quantity associated with a device."
    value: str | float
    "Value defines how much of a certain device counter is available."


class CounterSet(TypedDict, total=False):
    "CounterSet defines a named set of counters that are available to be used by devices defined in the ResourcePool."
    counters: dict[str, Counter]
    "Counters defines the set of counters for this CounterSet The name of each counter must be unique in that set and must be a DNS label."
    name: str
    "Name defines the name of the counter set."


class Device(TypedDict, total=False):
    "Device represents one individual hardware instance that can be selected based on its attributes."
    allNodes: bool
    "AllNodes indicates that all nodes have access to the device."
    allowMultipleAllocations: bool
    "AllowMultipleAllocations marks whether the device is allowed to be allocated to multiple DeviceRequests."
    attributes: dict[str, DeviceAttribute]
    "Attributes defines the set of attributes for this device."
    bindingConditions: list[str]
    "BindingConditions defines the conditions for proceeding with binding."
    bindingFailureConditions: list[str]
    "BindingFailureConditions defines the conditions for binding failure."
    bindsToNode: bool
    "BindsToNode indicates if the usage of an allocation involving this device has to be limited to exactly the node that was chosen when allocating the claim."
    capacity: dict[str, DeviceCapacity]
    "Capacity defines the set of capacities for this device."
    consumesCounters: list[DeviceCounterConsumption]
    "ConsumesCounters defines a list of references to sharedCounters and the set of counters that the device will consume from those counter sets."
    name: str
    "Name is unique identifier among all devices managed by the driver in the pool."
    nodeAllocatableResourceMappings: dict[str, NodeAllocatableResourceMapping]
    "NodeAllocatableResourceMappings defines the mapping of node resources that are managed by the DRA driver exposing this device."
    nodeName: str
    "NodeName identifies the node where the device is available."
    nodeSelector: NodeSelector
    "NodeSelector defines the nodes where the device is available."
    taints: list[DeviceTaint]
    "If specified, these are the driver-defined taints."


class DeviceAllocationConfiguration(TypedDict, total=False):
    "DeviceAllocationConfiguration gets embedded in an AllocationResult."
    opaque: OpaqueDeviceConfiguration
    "Opaque provides driver-specific configuration parameters."
    requests: list[str]
    "Requests lists the names of requests where the configuration applies."
    source: str
    "Source records whether the configuration comes from a class and thus is not something that a normal user would have been able to set or from a claim."


class DeviceAllocationResult(TypedDict, total=False):
    "DeviceAllocationResult is the result of allocating devices."
    config: list[DeviceAllocationConfiguration]
    "This field is a combination of all the claim and class configuration parameters."
    results: list[DeviceRequestAllocationResult]
    "Results lists all allocated devices."


DeviceAttribute = TypedDict(
    "DeviceAttribute",
    {
        "bool": "bool",
        "bools": "list[bool]",
        "int": "int",
        "ints": "list[int]",
        "string": "str",
        "strings": "list[str]",
        "version": "str",
        "versions": "list[str]",
    },
    total=False,
)


class DeviceCapacity(TypedDict, total=False):
    "DeviceCapacity describes a quantity associated with a device."
    requestPolicy: CapacityRequestPolicy
    "RequestPolicy defines how this DeviceCapacity must be consumed when the device is allowed to be shared by multiple allocations."
    value: str | float
    "Value defines how much of a certain capacity that device has."


class DeviceClaim(TypedDict, total=False):
    "DeviceClaim defines how to request devices with a ResourceClaim."
    config: list[DeviceClaimConfiguration]
    "This field holds configuration for multiple potential drivers which could satisfy requests in this claim."
    constraints: list[DeviceConstraint]
    "These constraints must be satisfied by the set of devices that get allocated for the claim."
    requests: list[DeviceRequest]
    "Requests represent individual requests for distinct devices which must all be satisfied."


class DeviceClaimConfiguration(TypedDict, total=False):
    "DeviceClaimConfiguration is used for configuration parameters in DeviceClaim."
    opaque: OpaqueDeviceConfiguration
    "Opaque provides driver-specific configuration parameters."
    requests: list[str]
    "Requests lists the names of requests where the configuration applies."


class DeviceClass(TypedDict, total=False):
    "DeviceClass is a vendor- or admin-provided resource that contains device configuration and selectors."
    apiVersion: Required[Literal["resource.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["DeviceClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata"
    spec: DeviceClassSpec
    "Spec defines what can be allocated and how to configure it."


class DeviceClassConfiguration(TypedDict, total=False):
    "DeviceClassConfiguration is used in DeviceClass."
    opaque: OpaqueDeviceConfiguration
    "Opaque provides driver-specific configuration parameters."


class DeviceClassSpec(TypedDict, total=False):
    "DeviceClassSpec is used in a [DeviceClass] to define what can be allocated and how to configure it."
    config: list[DeviceClassConfiguration]
    "Config defines configuration parameters that apply to each device that is claimed via this class."
    extendedResourceName: str
    "ExtendedResourceName is the extended resource name for the devices of this class."
    selectors: list[DeviceSelector]
    "Each selector must be satisfied by a device which is claimed via this class."


class DeviceConstraint(TypedDict, total=False):
    "DeviceConstraint must have exactly one field set besides Requests."
    distinctAttribute: str
    "DistinctAttribute requires that all devices in question have this attribute and that its type and value are unique across those devices."
    matchAttribute: str
    "MatchAttribute requires that all devices in question have this attribute and that its type and value are the same across those devices."
    requests: list[str]
    "Requests is a list of the one or more requests in this claim which must co-satisfy this constraint."


class DeviceCounterConsumption(TypedDict, total=False):
    "DeviceCounterConsumption defines a set of counters that a device will consume from a CounterSet."
    counterSet: str
    "CounterSet is the name of the set from which the counters defined will be consumed."
    counters: dict[str, Counter]
    "Counters defines the counters that will be consumed by the device."


class DeviceRequest(TypedDict, total=False):
    "DeviceRequest is a request for devices required for a claim."
    exactly: ExactDeviceRequest
    "Exactly specifies the details for a single request that must be met exactly for the request to be satisfied."
    firstAvailable: list[DeviceSubRequest]
    "FirstAvailable contains subrequests, of which exactly one will be selected by the scheduler."
    name: str
    "Name can be used to reference this request in a pod.spec.containers[].resources.claims entry and in a constraint of the claim."


class DeviceRequestAllocationResult(TypedDict, total=False):
    "DeviceRequestAllocationResult contains the allocation result for one request."
    adminAccess: bool
    "AdminAccess indicates that this device was allocated for administrative access."
    bindingConditions: list[str]
    "BindingConditions contains a copy of the BindingConditions from the corresponding ResourceSlice at the time of allocation."
    bindingFailureConditions: list[str]
    "BindingFailureConditions contains a copy of the BindingFailureConditions from the corresponding ResourceSlice at the time of allocation."
    consumedCapacity: dict[str, str | float]
    "ConsumedCapacity tracks the amount of capacity consumed per device as part of the claim request."
    device: str
    "Device references one device instance via its name in the driver's resource pool."
    driver: str
    "Driver specifies the name of the DRA driver whose kubelet plugin should be invoked to process the allocation once the claim is needed on a node."
    pool: str
    "This name together with the driver name and the device name field identify which device was allocated (`<driver name>/<pool name>/<device name>`)."
    request: str
    "Request is the name of the request in the claim which caused this device to be allocated."
    shareID: str
    "ShareID uniquely identifies an individual allocation share of the device, used when the device supports multiple simultaneous allocations."
    tolerations: list[DeviceToleration]
    "A copy of all tolerations specified in the request at the time when the device got allocated."


class DeviceSelector(TypedDict, total=False):
    "DeviceSelector must have exactly one field set."
    cel: CELDeviceSelector
    "CEL contains a CEL expression for selecting a device."


class DeviceSubRequest(TypedDict, total=False):
    "DeviceSubRequest describes a request for device provided in the claim.spec.devices.requests[].firstAvailable array."
    allocationMode: str
    "AllocationMode and its related fields define how devices are allocated to satisfy this subrequest."
    capacity: CapacityRequirements
    "Capacity define resource requirements against each capacity."
    count: int
    "Count is used only when the count mode is \"ExactCount\"."
    deviceClassName: str
    "DeviceClassName references a specific DeviceClass, which can define additional configuration and selectors to be inherited by this subrequest."
    name: str
    "Name can be used to reference this subrequest in the list of constraints or the list of configurations for the claim."
    selectors: list[DeviceSelector]
    "Selectors define criteria which must be satisfied by a specific device in order for that device to be considered for this subrequest."
    tolerations: list[DeviceToleration]
    "If specified, the request's tolerations."


class DeviceTaint(TypedDict, total=False):
    "The device this taint is attached to has the \"effect\" on any claim which does not tolerate the taint and, through the claim, to pods using the claim."
    effect: str
    "The effect of the taint on claims that do not tolerate the taint and through such claims on the pods using them."
    key: str
    "The taint key to be applied to a device."
    timeAdded: str
    "TimeAdded represents the time at which the taint was added or (only in a DeviceTaintRule) the effect was modified."
    value: str
    "The taint value corresponding to the taint key."


class DeviceToleration(TypedDict, total=False):
    "The ResourceClaim this DeviceToleration is attached to tolerates any taint that matches the triple <key,value,effect> using the matching operator <operator>."
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


class ExactDeviceRequest(TypedDict, total=False):
    "ExactDeviceRequest is a request for one or more identical devices."
    adminAccess: bool
    "AdminAccess indicates that this is a claim for administrative access to the device(s)."
    allocationMode: str
    "AllocationMode and its related fields define how devices are allocated to satisfy this request."
    capacity: CapacityRequirements
    "Capacity define resource requirements against each capacity."
    count: int
    "Count is used only when the count mode is \"ExactCount\"."
    deviceClassName: str
    "DeviceClassName references a specific DeviceClass, which can define additional configuration and selectors to be inherited by this request."
    selectors: list[DeviceSelector]
    "Selectors define criteria which must be satisfied by a specific device in order for that device to be considered for this request."
    tolerations: list[DeviceToleration]
    "If specified, the request's tolerations."


class NetworkDeviceData(TypedDict, total=False):
    "NetworkDeviceData provides network-related details for the allocated device."
    hardwareAddress: str
    "HardwareAddress represents the hardware address (e.g."
    interfaceName: str
    "InterfaceName specifies the name of the network interface associated with the allocated device."
    ips: list[str]
    "IPs lists the network addresses assigned to the device's network interface."


class NodeAllocatableResourceMapping(TypedDict, total=False):
    "NodeAllocatableResourceMapping defines the translation between the DRA device/capacity units requested to the corresponding quantity of the node allocatable resource."
    allocationMultiplier: str | float
    "AllocationMultiplier is used as a multiplier for the allocated device count or the allocated capacity in the claim."
    capacityKey: str
    "CapacityKey references a capacity name defined as a key in the `spec.devices[*].capacity` map."


class OpaqueDeviceConfiguration(TypedDict, total=False):
    "OpaqueDeviceConfiguration contains configuration parameters for a driver in a format defined by the driver vendor."
    driver: str
    "Driver is used to determine which kubelet plugin needs to be passed these configuration parameters."
    parameters: dict[str, Any]
    "Parameters can contain arbitrary data."


class ResourceClaim(TypedDict, total=False):
    "ResourceClaim describes a request for access to resources in the cluster, for use by workloads."
    apiVersion: Required[Literal["resource.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ResourceClaim"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata"
    spec: ResourceClaimSpec
    "Spec describes what is being requested and how to configure it."
    status: ResourceClaimStatus
    "Status describes whether the claim is ready to use and what has been allocated."


class ResourceClaimConsumerReference(TypedDict, total=False):
    "ResourceClaimConsumerReference contains enough information to let you locate the consumer of a ResourceClaim."
    apiGroup: str
    "APIGroup is the group for the resource being referenced."
    name: str
    "Name is the name of resource being referenced."
    resource: str
    "Resource is the type of resource being referenced, for example \"pods\"."
    uid: str
    "UID identifies exactly one incarnation of the resource."


class ResourceClaimSpec(TypedDict, total=False):
    "ResourceClaimSpec defines what is being requested in a ResourceClaim and how to configure it."
    devices: DeviceClaim
    "Devices defines how to request devices."


class ResourceClaimStatus(TypedDict, total=False):
    "ResourceClaimStatus tracks whether the resource has been allocated and what the result of that was."
    allocation: AllocationResult
    "Allocation is set once the claim has been allocated successfully."
    devices: list[AllocatedDeviceStatus]
    "Devices contains the status of each device allocated for this claim, as reported by the driver."
    reservedFor: list[ResourceClaimConsumerReference]
    "ReservedFor indicates which entities are currently allowed to use the claim."


class ResourceClaimTemplate(TypedDict, total=False):
    "ResourceClaimTemplate is used to produce ResourceClaim objects."
    apiVersion: Required[Literal["resource.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ResourceClaimTemplate"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata"
    spec: ResourceClaimTemplateSpec
    "Describes the ResourceClaim that is to be generated."


class ResourceClaimTemplateSpec(TypedDict, total=False):
    "ResourceClaimTemplateSpec contains the metadata and fields for a ResourceClaim."
    metadata: ObjectMeta
    "ObjectMeta may contain labels and annotations that will be copied into the ResourceClaim when creating it."
    spec: ResourceClaimSpec
    "Spec for the ResourceClaim."


class ResourcePool(TypedDict, total=False):
    "ResourcePool describes the pool that ResourceSlices belong to."
    generation: int
    "Generation tracks the change in a pool over time."
    name: str
    "Name is used to identify the pool."
    resourceSliceCount: int
    "ResourceSliceCount is the total number of ResourceSlices in the pool at this generation number."


class ResourceSlice(TypedDict, total=False):
    "ResourceSlice represents one or more resources in a pool of similar resources, managed by a common driver."
    apiVersion: Required[Literal["resource.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ResourceSlice"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object metadata"
    spec: ResourceSliceSpec
    "Contains the information published by the driver."


class ResourceSliceSpec(TypedDict, total=False):
    "ResourceSliceSpec contains the information published by the driver in one ResourceSlice."
    allNodes: bool
    "AllNodes indicates that all nodes have access to the resources in the pool."
    devices: list[Device]
    "Devices lists some or all of the devices in this pool."
    driver: str
    "Driver identifies the DRA driver providing the capacity information."
    nodeName: str
    "NodeName identifies the node which provides the resources in this pool."
    nodeSelector: NodeSelector
    "NodeSelector defines which nodes have access to the resources in the pool, when that pool is not limited to a single node."
    perDeviceNodeSelection: bool
    "PerDeviceNodeSelection defines whether the access from nodes to resources in the pool is set on the ResourceSlice level or on each device."
    pool: ResourcePool
    "Pool describes the pool that this ResourceSlice belongs to."
    sharedCounters: list[CounterSet]
    "SharedCounters defines a list of counter sets, each of which has a name and a list of counters available."
