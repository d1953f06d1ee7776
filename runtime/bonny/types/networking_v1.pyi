"""Types of networking/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import TypedLocalObjectReference
from .meta_v1 import Condition, LabelSelector, NamedMeta, ObjectMeta

class HTTPIngressPath(TypedDict, total=False):
    "HTTPIngressPath associates a path with a backend."
    backend: IngressBackend
    "backend defines the referenced service endpoint to which the traffic will be forwarded to."
    path: str
    "path is matched against the path of an incoming request."
    pathType: str
    "pathType determines the interpretation of the path matching."


class HTTPIngressRuleValue(TypedDict, total=False):
    "HTTPIngressRuleValue is a list of http selectors pointing to backends."
    paths: list[HTTPIngressPath]
    "paths is a collection of paths that map requests to backends."


class IPAddress(TypedDict, total=False):
    "IPAddress represents a single IP of a single IP Family."
    apiVersion: Required[Literal["networking.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["IPAddress"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: IPAddressSpec
    "spec is the desired state of the IPAddress."


class IPAddressSpec(TypedDict, total=False):
    "IPAddressSpec describe the attributes in an IP Address."
    parentRef: ParentReference
    "ParentRef references the resource that an IPAddress is attached to."


IPBlock = TypedDict(
    "IPBlock",
    {
        "cidr": "str",
        "except": "list[str]",
    },
    total=False,
)


class Ingress(TypedDict, total=False):
    "Ingress is a collection of rules that allow inbound connections to reach the endpoints defined by a backend."
    apiVersion: Required[Literal["networking.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Ingress"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: IngressSpec
    "spec is the desired state of the Ingress."
    status: IngressStatus
    "status is the current state of the Ingress."


class IngressBackend(TypedDict, total=False):
    "IngressBackend describes all endpoints for a given service and port."
    resource: TypedLocalObjectReference
    "resource is an ObjectRef to another Kubernetes resource in the namespace of the Ingress object."
    service: IngressServiceBackend
    "service references a service as a backend."


class IngressClass(TypedDict, total=False):
    "IngressClass represents the class of the Ingress, referenced by the Ingress Spec."
    apiVersion: Required[Literal["networking.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["IngressClass"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: IngressClassSpec
    "spec is the desired state of the IngressClass."


class IngressClassParametersReference(TypedDict, total=False):
    "IngressClassParametersReference identifies an API object."
    apiGroup: str
    "apiGroup is the group for the resource being referenced."
    kind: str
    "kind is the type of resource being referenced."
    name: str
    "name is the name of resource being referenced."
    namespace: str
    "namespace is the namespace of the resource being referenced."
    scope: str
    "scope represents if this refers to a cluster or namespace scoped resource."


class IngressClassSpec(TypedDict, total=False):
    "IngressClassSpec provides information about the class of an Ingress."
    controller: str
    "controller refers to the name of the controller that should handle this class."
    parameters: IngressClassParametersReference
    "parameters is a link to a custom resource containing additional configuration for the controller."


class IngressLoadBalancerIngress(TypedDict, total=False):
    "IngressLoadBalancerIngress represents the status of a load-balancer ingress point."
    hostname: str
    "hostname is set for load-balancer ingress points that are DNS based."
    ip: str
    "ip is set for load-balancer ingress points that are IP based."
    ports: list[IngressPortStatus]
    "ports provides information about the ports exposed by this LoadBalancer."


class IngressLoadBalancerStatus(TypedDict, total=False):
    "IngressLoadBalancerStatus represents the status of a load-balancer."
    ingress: list[IngressLoadBalancerIngress]
    "ingress is a list containing ingress points for the load-balancer."


class IngressPortStatus(TypedDict, total=False):
    "IngressPortStatus represents the error condition of a service port"
    error: str
    "error is to record the problem with the service port The format of the error shall comply with the following rules: - built-in error values shall be specified in this file and those shall use"
    port: int
    "port is the port number of the ingress port."
    protocol: str
    "protocol is the protocol of the ingress port."


class IngressRule(TypedDict, total=False):
    "IngressRule represents the rules mapping the paths under a specified host to the related backend services."
    host: str
    "host is the fully qualified domain name of a network host, as defined by RFC 3986."
    http: HTTPIngressRuleValue


class IngressServiceBackend(TypedDict, total=False):
    "IngressServiceBackend references a Kubernetes Service as a Backend."
    name: str
    "name is the referenced service."
    port: ServiceBackendPort
    "port of the referenced service."


class IngressSpec(TypedDict, total=False):
    "IngressSpec describes the Ingress the user wishes to exist."
    defaultBackend: IngressBackend
    "defaultBackend is the backend that should handle requests that don't match any rule."
    ingressClassName: str
    "ingressClassName is the name of an IngressClass cluster resource."
    rules: list[IngressRule]
    "rules is a list of host rules used to configure the Ingress."
    tls: list[IngressTLS]
    "tls represents the TLS configuration."


class IngressStatus(TypedDict, total=False):
    "IngressStatus describe the current state of the Ingress."
    loadBalancer: IngressLoadBalancerStatus
    "loadBalancer contains the current status of the load-balancer."


class IngressTLS(TypedDict, total=False):
    "IngressTLS describes the transport layer security associated with an ingress."
    hosts: list[str]
    "hosts is a list of hosts included in the TLS certificate."
    secretName: str
    "secretName is the name of the secret used to terminate TLS traffic on port 443."


class NetworkPolicy(TypedDict, total=False):
    "NetworkPolicy describes what network traffic is allowed for a set of Pods"
    apiVersion: Required[Literal["networking.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["NetworkPolicy"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: NetworkPolicySpec
    "spec represents the specification of the desired behavior for this NetworkPolicy."


class NetworkPolicyEgressRule(TypedDict, total=False):
    "NetworkPolicyEgressRule describes a particular set of traffic that is allowed out of pods matched by a NetworkPolicySpec's podSelector."
    ports: list[NetworkPolicyPort]
    "ports is a list of destination ports for outgoing traffic."
    to: list[NetworkPolicyPeer]
    "to is a list of destinations for outgoing traffic of pods selected for this rule."


NetworkPolicyIngressRule = TypedDict(
    "NetworkPolicyIngressRule",
    {
        "from": "list[NetworkPolicyPeer]",
        "ports": "list[NetworkPolicyPort]",
    },
    total=False,
)


class NetworkPolicyPeer(TypedDict, total=False):
    "NetworkPolicyPeer describes a peer to allow traffic to/from."
    ipBlock: IPBlock
    "ipBlock defines policy on a particular IPBlock."
    namespaceSelector: LabelSelector
    "namespaceSelector selects namespaces using cluster-scoped labels."
    podSelector: LabelSelector
    "podSelector is a label selector which selects pods."


class NetworkPolicyPort(TypedDict, total=False):
    "NetworkPolicyPort describes a port to allow traffic on"
    endPort: int
    "endPort indicates that the range of ports from port to endPort if set, inclusive, should be allowed by the policy."
    port: int | str
    "port represents the port on the given protocol."
    protocol: str
    "protocol represents the protocol (TCP, UDP, or SCTP) which traffic must match."


class NetworkPolicySpec(TypedDict, total=False):
    "NetworkPolicySpec provides the specification of a NetworkPolicy"
    egress: list[NetworkPolicyEgressRule]
    "egress is a list of egress rules to be applied to the selected pods."
    ingress: list[NetworkPolicyIngressRule]
    "ingress is a list of ingress rules to be applied to the selected pods."
    podSelector: LabelSelector
    "podSelector selects the pods to which this NetworkPolicy object applies."
    policyTypes: list[str]
    "policyTypes is a list of rule types that the NetworkPolicy relates to."


class ParentReference(TypedDict, total=False):
    "ParentReference describes a reference to a parent object."
    group: str
    "Group is the group of the object being referenced."
    name: str
    "Name is the name of the object being referenced."
    namespace: str
    "Namespace is the namespace of the object being referenced."
    resource: str
    "Resource is the resource of the object being referenced."


class ServiceBackendPort(TypedDict, total=False):
    "ServiceBackendPort is the service port being referenced."
    name: str
    "name is the name of the port on the Service."
    number: int
    "number is the numerical port number (e.g."


class ServiceCIDR(TypedDict, total=False):
    "ServiceCIDR defines a range of IP addresses using CIDR format (e.g."
    apiVersion: Required[Literal["networking.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ServiceCIDR"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: ServiceCIDRSpec
    "spec is the desired state of the ServiceCIDR. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"
    status: ServiceCIDRStatus
    "status represents the current state of the ServiceCIDR. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"


class ServiceCIDRSpec(TypedDict, total=False):
    "ServiceCIDRSpec define the CIDRs the user wants to use for allocating ClusterIPs for Services."
    cidrs: list[str]
    "CIDRs defines the IP blocks in CIDR notation (e.g."


class ServiceCIDRStatus(TypedDict, total=False):
    "ServiceCIDRStatus describes the current state of the ServiceCIDR."
    conditions: list[Condition]
    "conditions holds an array of metav1.Condition that describe the state of the ServiceCIDR. Current service state"
