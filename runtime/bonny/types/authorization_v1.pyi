"""Types of authorization/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import FieldSelectorRequirement, LabelSelectorRequirement, NamedMeta, ObjectMeta

class FieldSelectorAttributes(TypedDict, total=False):
    "FieldSelectorAttributes indicates a field limited access."
    rawSelector: str
    "rawSelector is the serialization of a field selector that would be included in a query parameter."
    requirements: list[FieldSelectorRequirement]
    "requirements is the parsed interpretation of a field selector."


class LabelSelectorAttributes(TypedDict, total=False):
    "LabelSelectorAttributes indicates a label limited access."
    rawSelector: str
    "rawSelector is the serialization of a field selector that would be included in a query parameter."
    requirements: list[LabelSelectorRequirement]
    "requirements is the parsed interpretation of a label selector."


class LocalSubjectAccessReview(TypedDict, total=False):
    "LocalSubjectAccessReview checks whether or not a user or group can perform an action in a given namespace."
    apiVersion: Required[Literal["authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["LocalSubjectAccessReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard list metadata."
    spec: SubjectAccessReviewSpec
    "spec holds information about the request being evaluated."
    status: SubjectAccessReviewStatus
    "status is filled in by the server and indicates whether the request is allowed or not"


class NonResourceAttributes(TypedDict, total=False):
    "NonResourceAttributes includes the authorization attributes available for non-resource requests to the Authorizer interface"
    path: str
    "path is the URL path of the request"
    verb: str
    "verb is the standard HTTP verb"


class NonResourceRule(TypedDict, total=False):
    "NonResourceRule holds information that describes a rule for the non-resource"
    nonResourceURLs: list[str]
    "nonResourceURLs is a set of partial urls that a user should have access to."
    verbs: list[str]
    "verbs is a list of kubernetes non-resource API verbs, like: get, post, put, delete, patch, head, options."


class ResourceAttributes(TypedDict, total=False):
    "ResourceAttributes includes the authorization attributes available for resource requests to the Authorizer interface"
    fieldSelector: FieldSelectorAttributes
    "fieldSelector describes the limitation on access based on field."
    group: str
    "group is the API Group of the Resource."
    labelSelector: LabelSelectorAttributes
    "labelSelector describes the limitation on access based on labels."
    name: str
    "name is the name of the resource being requested for a \"get\" or deleted for a \"delete\"."
    namespace: str
    "namespace is the namespace of the action being requested."
    resource: str
    "resource is one of the existing resource types."
    subresource: str
    "subresource is one of the existing resource types."
    verb: str
    "verb is a kubernetes resource API verb, like: get, list, watch, create, update, delete, proxy."
    version: str
    "version is the API Version of the Resource."


class ResourceRule(TypedDict, total=False):
    "ResourceRule is the list of actions the subject is allowed to perform on resources."
    apiGroups: list[str]
    "apiGroups is the name of the APIGroup that contains the resources."
    resourceNames: list[str]
    "resourceNames is an optional white list of names that the rule applies to."
    resources: list[str]
    "resources is a list of resources this rule applies to."
    verbs: list[str]
    "verbs is a list of kubernetes resource API verbs, like: get, list, watch, create, update, delete, proxy."


class SelfSubjectAccessReview(TypedDict, total=False):
    "SelfSubjectAccessReview checks whether or the current user can perform an action."
    apiVersion: Required[Literal["authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["SelfSubjectAccessReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard list metadata."
    spec: SelfSubjectAccessReviewSpec
    "spec holds information about the request being evaluated."
    status: SubjectAccessReviewStatus
    "status is filled in by the server and indicates whether the request is allowed or not"


class SelfSubjectAccessReviewSpec(TypedDict, total=False):
    "SelfSubjectAccessReviewSpec is a description of the access request."
    nonResourceAttributes: NonResourceAttributes
    "nonResourceAttributes describes information for a non-resource access request"
    resourceAttributes: ResourceAttributes
    "resourceAttributes describes information for a resource access request"


class SelfSubjectRulesReview(TypedDict, total=False):
    "SelfSubjectRulesReview enumerates the set of actions the current user can perform within a namespace."
    apiVersion: Required[Literal["authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["SelfSubjectRulesReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard list metadata."
    spec: SelfSubjectRulesReviewSpec
    "spec holds information about the request being evaluated."
    status: SubjectRulesReviewStatus
    "status is filled in by the server and indicates the set of actions a user can perform."


class SelfSubjectRulesReviewSpec(TypedDict, total=False):
    "SelfSubjectRulesReviewSpec defines the specification for SelfSubjectRulesReview."
    namespace: str
    "namespace to evaluate rules for."


class SubjectAccessReview(TypedDict, total=False):
    "SubjectAccessReview checks whether or not a user or group can perform an action."
    apiVersion: Required[Literal["authorization.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["SubjectAccessReview"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard list metadata."
    spec: SubjectAccessReviewSpec
    "spec holds information about the request being evaluated"
    status: SubjectAccessReviewStatus
    "status is filled in by the server and indicates whether the request is allowed or not"


class SubjectAccessReviewSpec(TypedDict, total=False):
    "SubjectAccessReviewSpec is a description of the access request."
    extra: dict[str, list[str]]
    "extra corresponds to the user.Info.GetExtra() method from the authenticator."
    groups: list[str]
    "groups is the groups you're testing for."
    nonResourceAttributes: NonResourceAttributes
    "nonResourceAttributes describes information for a non-resource access request"
    resourceAttributes: ResourceAttributes
    "resourceAttributes describes information for a resource access request"
    uid: str
    "uid information about the requesting user."
    user: str
    "user is the user you're testing for."


class SubjectAccessReviewStatus(TypedDict, total=False):
    "SubjectAccessReviewStatus"
    allowed: bool
    "allowed is required."
    denied: bool
    "denied is optional."
    evaluationError: str
    "evaluationError is an indication that some error occurred during the authorization check."
    reason: str
    "reason is optional."


class SubjectRulesReviewStatus(TypedDict, total=False):
    "SubjectRulesReviewStatus contains the result of a rules check."
    evaluationError: str
    "evaluationError can appear in combination with Rules."
    incomplete: bool
    "incomplete is true when the rules returned by this call are incomplete."
    nonResourceRules: list[NonResourceRule]
    "nonResourceRules is the list of actions the subject is allowed to perform on non-resources."
    resourceRules: list[ResourceRule]
    "resourceRules is the list of actions the subject is allowed to perform on resources."
