"""Types of flowcontrol/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class ExemptPriorityLevelConfiguration(TypedDict, total=False):
    "ExemptPriorityLevelConfiguration describes the configurable aspects of the handling of exempt requests."
    lendablePercent: int
    "`lendablePercent` prescribes the fraction of the level's NominalCL that can be borrowed by other priority levels."
    nominalConcurrencyShares: int
    "`nominalConcurrencyShares` (NCS) contributes to the computation of the NominalConcurrencyLimit (NominalCL) of this level."


class FlowDistinguisherMethod(TypedDict, total=False):
    "FlowDistinguisherMethod specifies the method of a flow distinguisher."
    type: str
    "`type` is the type of flow distinguisher method The supported types are \"ByUser\" and \"ByNamespace\"."


class FlowSchema(TypedDict, total=False):
    "FlowSchema defines the schema of a group of flows."
    apiVersion: Required[Literal["flowcontrol.apiserver.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["FlowSchema"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "`metadata` is the standard object's metadata."
    spec: FlowSchemaSpec
    "`spec` is the specification of the desired behavior of a FlowSchema."
    status: FlowSchemaStatus
    "`status` is the current status of a FlowSchema."


class FlowSchemaCondition(TypedDict, total=False):
    "FlowSchemaCondition describes conditions for a FlowSchema."
    lastTransitionTime: str
    "`lastTransitionTime` is the last time the condition transitioned from one status to another."
    message: str
    "`message` is a human-readable message indicating details about last transition."
    reason: str
    "`reason` is a unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "`status` is the status of the condition."
    type: str
    "`type` is the type of the condition."


class FlowSchemaSpec(TypedDict, total=False):
    "FlowSchemaSpec describes how the FlowSchema's specification looks like."
    distinguisherMethod: FlowDistinguisherMethod
    "`distinguisherMethod` defines how to compute the flow distinguisher for requests that match this schema."
    matchingPrecedence: int
    "`matchingPrecedence` is used to choose among the FlowSchemas that match a given request."
    priorityLevelConfiguration: PriorityLevelConfigurationReference
    "`priorityLevelConfiguration` should reference a PriorityLevelConfiguration in the cluster."
    rules: list[PolicyRulesWithSubjects]
    "`rules` describes which requests will match this flow schema."


class FlowSchemaStatus(TypedDict, total=False):
    "FlowSchemaStatus represents the current state of a FlowSchema."
    conditions: list[FlowSchemaCondition]
    "`conditions` is a list of the current states of FlowSchema."


class GroupSubject(TypedDict, total=False):
    "GroupSubject holds detailed information for group-kind subject."
    name: str
    "name is the user group that matches, or \"*\" to match all user groups."


class LimitResponse(TypedDict, total=False):
    "LimitResponse defines how to handle requests that can not be executed right now."
    queuing: QueuingConfiguration
    "`queuing` holds the configuration parameters for queuing."
    type: str
    "`type` is \"Queue\" or \"Reject\"."


class LimitedPriorityLevelConfiguration(TypedDict, total=False):
    "LimitedPriorityLevelConfiguration specifies how to handle requests that are subject to limits."
    borrowingLimitPercent: int
    "`borrowingLimitPercent`, if present, configures a limit on how many seats this priority level can borrow from other priority levels."
    lendablePercent: int
    "`lendablePercent` prescribes the fraction of the level's NominalCL that can be borrowed by other priority levels."
    limitResponse: LimitResponse
    "`limitResponse` indicates what to do with requests that can not be executed right now"
    nominalConcurrencyShares: int
    "`nominalConcurrencyShares` (NCS) contributes to the computation of the NominalConcurrencyLimit (NominalCL) of this level."


class NonResourcePolicyRule(TypedDict, total=False):
    "NonResourcePolicyRule is a predicate that matches non-resource requests according to their verb and the target non-resource URL. A NonResourcePolicyRule matches a request if and only if both (a) at least one member of verbs matches the request and (b) at least one member of nonResourceURLs matches the request."
    nonResourceURLs: list[str]
    "`nonResourceURLs` is a set of url prefixes that a user should have access to and may not be empty."
    verbs: list[str]
    "`verbs` is a list of matching verbs and may not be empty."


class PolicyRulesWithSubjects(TypedDict, total=False):
    "PolicyRulesWithSubjects prescribes a test that applies to a request to an apiserver."
    nonResourceRules: list[NonResourcePolicyRule]
    "`nonResourceRules` is a list of NonResourcePolicyRules that identify matching requests according to their verb and the target non-resource URL."
    resourceRules: list[ResourcePolicyRule]
    "`resourceRules` is a slice of ResourcePolicyRules that identify matching requests according to their verb and the target resource."
    subjects: list[Subject]
    "subjects is the list of normal user, serviceaccount, or group that this rule cares about."


class PriorityLevelConfiguration(TypedDict, total=False):
    "PriorityLevelConfiguration represents the configuration of a priority level."
    apiVersion: Required[Literal["flowcontrol.apiserver.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["PriorityLevelConfiguration"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "`metadata` is the standard object's metadata."
    spec: PriorityLevelConfigurationSpec
    "`spec` is the specification of the desired behavior of a \"request-priority\"."
    status: PriorityLevelConfigurationStatus
    "`status` is the current status of a \"request-priority\"."


class PriorityLevelConfigurationCondition(TypedDict, total=False):
    "PriorityLevelConfigurationCondition defines the condition of priority level."
    lastTransitionTime: str
    "`lastTransitionTime` is the last time the condition transitioned from one status to another."
    message: str
    "`message` is a human-readable message indicating details about last transition."
    reason: str
    "`reason` is a unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "`status` is the status of the condition."
    type: str
    "`type` is the type of the condition."


class PriorityLevelConfigurationReference(TypedDict, total=False):
    "PriorityLevelConfigurationReference contains information that points to the \"request-priority\" being used."
    name: str
    "`name` is the name of the priority level configuration being referenced Required."


class PriorityLevelConfigurationSpec(TypedDict, total=False):
    "PriorityLevelConfigurationSpec specifies the configuration of a priority level."
    exempt: ExemptPriorityLevelConfiguration
    "`exempt` specifies how requests are handled for an exempt priority level."
    limited: LimitedPriorityLevelConfiguration
    "`limited` specifies how requests are handled for a Limited priority level."
    type: str
    "`type` indicates whether this priority level is subject to limitation on request execution."


class PriorityLevelConfigurationStatus(TypedDict, total=False):
    "PriorityLevelConfigurationStatus represents the current state of a \"request-priority\"."
    conditions: list[PriorityLevelConfigurationCondition]
    "`conditions` is the current state of \"request-priority\"."


class QueuingConfiguration(TypedDict, total=False):
    "QueuingConfiguration holds the configuration parameters for queuing"
    handSize: int
    "`handSize` is a small positive number that configures the shuffle sharding of requests into queues."
    queueLengthLimit: int
    "`queueLengthLimit` is the maximum number of requests allowed to be waiting in a given queue of this priority level at a time; excess requests are rejected."
    queues: int
    "`queues` is the number of queues for this priority level."


class ResourcePolicyRule(TypedDict, total=False):
    "ResourcePolicyRule is a predicate that matches some resource requests, testing the request's verb and the target resource."
    apiGroups: list[str]
    "`apiGroups` is a list of matching API groups and may not be empty."
    clusterScope: bool
    "`clusterScope` indicates whether to match requests that do not specify a namespace (which happens either because the resource is not namespaced or the request targets all namespaces)."
    namespaces: list[str]
    "`namespaces` is a list of target namespaces that restricts matches."
    resources: list[str]
    "`resources` is a list of matching resources (i.e., lowercase and plural) with, if desired, subresource."
    verbs: list[str]
    "`verbs` is a list of matching verbs and may not be empty."


class ServiceAccountSubject(TypedDict, total=False):
    "ServiceAccountSubject holds detailed information for service-account-kind subject."
    name: str
    "`name` is the name of matching ServiceAccount objects, or \"*\" to match regardless of name."
    namespace: str
    "`namespace` is the namespace of matching ServiceAccount objects."


class Subject(TypedDict, total=False):
    "Subject matches the originator of a request, as identified by the request authentication system."
    group: GroupSubject
    "`group` matches based on user group name."
    kind: str
    "`kind` indicates which one of the other fields is non-empty."
    serviceAccount: ServiceAccountSubject
    "`serviceAccount` matches ServiceAccounts."
    user: UserSubject
    "`user` matches based on username."


class UserSubject(TypedDict, total=False):
    "UserSubject holds detailed information for user-kind subject."
    name: str
    "`name` is the username that matches, or \"*\" to match all usernames."
