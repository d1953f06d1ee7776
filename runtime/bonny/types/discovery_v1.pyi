"""Types of discovery/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import ObjectReference
from .meta_v1 import NamedMeta, ObjectMeta

class Endpoint(TypedDict, total=False):
    "Endpoint represents a single logical \"backend\" implementing a service."
    addresses: list[str]
    "addresses of this endpoint."
    conditions: EndpointConditions
    "conditions contains information about the current status of the endpoint."
    deprecatedTopology: dict[str, str]
    "deprecatedTopology contains topology information part of the v1beta1 API. This field is deprecated, and will be removed when the v1beta1 API is removed (no sooner than kubernetes v1.24)."
    hints: EndpointHints
    "hints contains information associated with how an endpoint should be consumed."
    hostname: str
    "hostname of this endpoint."
    nodeName: str
    "nodeName represents the name of the Node hosting this endpoint."
    targetRef: ObjectReference
    "targetRef is a reference to a Kubernetes object that represents this endpoint."
    zone: str
    "zone is the name of the Zone this endpoint exists in."


class EndpointConditions(TypedDict, total=False):
    "EndpointConditions represents the current condition of an endpoint."
    ready: bool
    "ready indicates that this endpoint is ready to receive traffic, according to whatever system is managing the endpoint."
    serving: bool
    "serving indicates that this endpoint is able to receive traffic, according to whatever system is managing the endpoint."
    terminating: bool
    "terminating indicates that this endpoint is terminating."


class EndpointHints(TypedDict, total=False):
    "EndpointHints provides hints describing how an endpoint should be consumed."
    forNodes: list[ForNode]
    "forNodes indicates the node(s) this endpoint should be consumed by when using topology aware routing."
    forZones: list[ForZone]
    "forZones indicates the zone(s) this endpoint should be consumed by when using topology aware routing."


class EndpointPort(TypedDict, total=False):
    "EndpointPort represents a Port used by an EndpointSlice"
    appProtocol: str
    "The application protocol for this port."
    name: str
    "name represents the name of this port."
    port: int
    "port represents the port number of the endpoint."
    protocol: str
    "protocol represents the IP protocol for this port."


class EndpointSlice(TypedDict, total=False):
    "EndpointSlice represents a set of service endpoints."
    addressType: str
    "addressType specifies the type of address carried by this EndpointSlice."
    apiVersion: Required[Literal["discovery.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    endpoints: list[Endpoint]
    "endpoints is a list of unique endpoints in this slice."
    kind: Required[Literal["EndpointSlice"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    ports: list[EndpointPort]
    "ports specifies the list of network ports exposed by each endpoint in this slice."


class ForNode(TypedDict, total=False):
    "ForNode provides information about which nodes should consume this endpoint."
    name: str
    "name represents the name of the node."


class ForZone(TypedDict, total=False):
    "ForZone provides information about which zones should consume this endpoint."
    name: str
    "name represents the name of the zone."
