"""Types of rbac/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import LabelSelector, NamedMeta, ObjectMeta

class AggregationRule(TypedDict, total=False):
    "AggregationRule describes how to locate ClusterRoles to aggregate into the ClusterRole"
    clusterRoleSelectors: list[LabelSelector]
    "ClusterRoleSelectors holds a list of selectors which will be used to find ClusterRoles and create the rules."


class ClusterRole(TypedDict, total=False):
    "ClusterRole is a cluster level, logical grouping of PolicyRules that can be referenced as a unit by a RoleBinding or ClusterRoleBinding."
    aggregationRule: AggregationRule
    "AggregationRule is an optional field that describes how to build the Rules for this ClusterRole."
    apiVersion: Required[Literal["rbac.authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ClusterRole"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    rules: list[PolicyRule]
    "Rules holds all the PolicyRules for this ClusterRole"


class ClusterRoleBinding(TypedDict, total=False):
    "ClusterRoleBinding references a ClusterRole, but not contain it."
    apiVersion: Required[Literal["rbac.authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ClusterRoleBinding"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    roleRef: RoleRef
    "RoleRef can only reference a ClusterRole in the global namespace."
    subjects: list[Subject]
    "Subjects holds references to the objects the role applies to."


class PolicyRule(TypedDict, total=False):
    "PolicyRule holds information that describes a policy rule, but does not contain information about who the rule applies to or which namespace the rule applies to."
    apiGroups: list[str]
    "APIGroups is the name of the APIGroup that contains the resources."
    nonResourceURLs: list[str]
    "NonResourceURLs is a set of partial urls that a user should have access to."
    resourceNames: list[str]
    "ResourceNames is an optional white list of names that the rule applies to."
    resources: list[str]
    "Resources is a list of resources this rule applies to."
    verbs: list[str]
    "Verbs is a list of Verbs that apply to ALL the ResourceKinds contained in this rule."


class Role(TypedDict, total=False):
    "Role is a namespaced, logical grouping of PolicyRules that can be referenced as a unit by a RoleBinding."
    apiVersion: Required[Literal["rbac.authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Role"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    rules: list[PolicyRule]
    "Rules holds all the PolicyRules for this Role"


class RoleBinding(TypedDict, total=False):
    "RoleBinding references a role, but does not contain it."
    apiVersion: Required[Literal["rbac.authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["RoleBinding"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    roleRef: RoleRef
    "RoleRef can reference a Role in the current namespace or a ClusterRole in the global namespace."
    subjects: list[Subject]
    "Subjects holds references to the objects the role applies to."


class RoleRef(TypedDict, total=False):
    "RoleRef contains information that points to the role being used"
    apiGroup: str
    "APIGroup is the group for the resource being referenced"
    kind: str
    "Kind is the type of resource being referenced"
    name: str
    "Name is the name of resource being referenced"


class Subject(TypedDict, total=False):
    "Subject contains a reference to the object or user identities a role binding applies to."
    apiGroup: str
    "APIGroup holds the API group of the referenced subject."
    kind: str
    "Kind of object being referenced."
    name: str
    "Name of the object being referenced."
    namespace: str
    "Namespace of the referenced object."
