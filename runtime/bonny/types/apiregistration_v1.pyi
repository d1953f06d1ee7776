"""Types of apiregistration/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class APIService(TypedDict, total=False):
    "APIService represents a server for a particular GroupVersion."
    apiVersion: Required[Literal["apiregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["APIService"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: APIServiceSpec
    "Spec contains information for locating and communicating with a server"
    status: APIServiceStatus
    "Status contains derived information about an API server"


class APIServiceCondition(TypedDict, total=False):
    "APIServiceCondition describes the state of an APIService at a particular point"
    lastTransitionTime: str
    "Last time the condition transitioned from one status to another."
    message: str
    "Human-readable message indicating details about last transition."
    reason: str
    "Unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "Status is the status of the condition."
    type: str
    "Type is the type of the condition."


class APIServiceSpec(TypedDict, total=False):
    "APIServiceSpec contains information for locating and communicating with a server."
    caBundle: str
    "CABundle is a PEM encoded CA bundle which will be used to validate an API server's serving certificate."
    group: str
    "Group is the API group name this server hosts"
    groupPriorityMinimum: int
    "GroupPriorityMinimum is the priority this group should have at least."
    insecureSkipTLSVerify: bool
    "InsecureSkipTLSVerify disables TLS certificate verification when communicating with this server."
    service: ServiceReference
    "Service is a reference to the service for this API server."
    version: str
    "Version is the API version this server hosts."
    versionPriority: int
    "VersionPriority controls the ordering of this API version inside of its group."


class APIServiceStatus(TypedDict, total=False):
    "APIServiceStatus contains derived information about an API server"
    conditions: list[APIServiceCondition]
    "Current service state of apiService."


class ServiceReference(TypedDict, total=False):
    "ServiceReference holds a reference to Service.legacy.k8s.io"
    name: str
    "Name is the name of the service"
    namespace: str
    "Namespace is the namespace of the service"
    port: int
    "If specified, the port on the service that hosting webhook."
