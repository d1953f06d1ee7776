"""Types of meta/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Any, Required, TypedDict


class Condition(TypedDict, total=False):
    "Condition contains details for one aspect of the current state of this API Resource."
    lastTransitionTime: str
    "lastTransitionTime is the last time the condition transitioned from one status to another."
    message: str
    "message is a human readable message indicating details about the transition."
    observedGeneration: int
    "observedGeneration represents the .metadata.generation that the condition was set based upon."
    reason: str
    "reason contains a programmatic identifier indicating the reason for the condition's last transition."
    status: str
    "status of the condition, one of True, False, Unknown."
    type: str
    "type of condition in CamelCase or in foo.example.com/CamelCase."


class DeleteOptions(TypedDict, total=False):
    "DeleteOptions may be provided when deleting an API object."
    apiVersion: str
    "APIVersion defines the versioned schema of this representation of an object."
    dryRun: list[str]
    "When present, indicates that modifications should not be persisted."
    gracePeriodSeconds: int
    "The duration in seconds before the object should be deleted."
    ignoreStoreReadErrorWithClusterBreakingPotential: bool
    "if set to true, it will trigger an unsafe deletion of the resource in case the normal deletion flow fails with a corrupt object error."
    kind: str
    "Kind is a string value representing the REST resource this object represents."
    orphanDependents: bool
    "Deprecated: please use the PropagationPolicy, this field will be deprecated in 1.7."
    preconditions: Preconditions
    "Must be fulfilled before a deletion is carried out."
    propagationPolicy: str
    "Whether and how garbage collection will be performed."


class FieldSelectorRequirement(TypedDict, total=False):
    "FieldSelectorRequirement is a selector that contains values, a key, and an operator that relates the key and values."
    key: str
    "key is the field selector key that the requirement applies to."
    operator: str
    "operator represents a key's relationship to a set of values."
    values: list[str]
    "values is an array of string values."


class LabelSelector(TypedDict, total=False):
    "A label selector is a label query over a set of resources."
    matchExpressions: list[LabelSelectorRequirement]
    "matchExpressions is a list of label selector requirements."
    matchLabels: dict[str, str]
    "matchLabels is a map of {key,value} pairs."


class LabelSelectorRequirement(TypedDict, total=False):
    "A label selector requirement is a selector that contains values, a key, and an operator that relates the key and values."
    key: str
    "key is the label key that the selector applies to."
    operator: str
    "operator represents a key's relationship to a set of values."
    values: list[str]
    "values is an array of string values."


class ManagedFieldsEntry(TypedDict, total=False):
    "ManagedFieldsEntry is a workflow-id, a FieldSet and the group version of the resource that the fieldset applies to."
    apiVersion: str
    "APIVersion defines the version of this resource that this field set applies to."
    fieldsType: str
    "FieldsType is the discriminator for the different fields format and version."
    fieldsV1: dict[str, Any]
    "FieldsV1 holds the first JSON version format as described in the \"FieldsV1\" type."
    manager: str
    "Manager is an identifier of the workflow managing these fields."
    operation: str
    "Operation is the type of operation which lead to this ManagedFieldsEntry being created."
    subresource: str
    "Subresource is the name of the subresource used to update that object, or empty string if the object was updated through the main resource."
    time: str
    "Time is the timestamp of when the ManagedFields entry was added."


class NamedMeta(TypedDict, total=False):
    "ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create."
    annotations: dict[str, str]
    "Annotations is an unstructured key value map stored with a resource that may be set by external tools to store and retrieve arbitrary metadata."
    creationTimestamp: str
    "CreationTimestamp is a timestamp representing the server time when this object was created."
    deletionGracePeriodSeconds: int
    "Number of seconds allowed for this object to gracefully terminate before it will be removed from the system."
    deletionTimestamp: str
    "DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted."
    finalizers: list[str]
    "Must be empty before the object is deleted from the registry."
    generateName: str
    "GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF the Name field has not been provided."
    generation: int
    "A sequence number representing a specific generation of the desired state."
    labels: dict[str, str]
    "Map of string keys and values that can be used to organize and categorize (scope and select) objects."
    managedFields: list[ManagedFieldsEntry]
    "ManagedFields maps workflow-id and version to the set of fields that are managed by that workflow."
    name: Required[str]
    "Name must be unique within a namespace."
    namespace: str
    "Namespace defines the space within which each name must be unique."
    ownerReferences: list[OwnerReference]
    "List of objects depended by this object."
    resourceVersion: str
    "An opaque value that represents the internal version of this object that can be used by clients to determine when objects have changed."
    selfLink: str
    "Deprecated: selfLink is a legacy read-only field that is no longer populated by the system."
    uid: str
    "UID is the unique in time and space value for this object."


class ObjectMeta(TypedDict, total=False):
    "ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create."
    annotations: dict[str, str]
    "Annotations is an unstructured key value map stored with a resource that may be set by external tools to store and retrieve arbitrary metadata."
    creationTimestamp: str
    "CreationTimestamp is a timestamp representing the server time when this object was created."
    deletionGracePeriodSeconds: int
    "Number of seconds allowed for this object to gracefully terminate before it will be removed from the system."
    deletionTimestamp: str
    "DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted."
    finalizers: list[str]
    "Must be empty before the object is deleted from the registry."
    generateName: str
    "GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF the Name field has not been provided."
    generation: int
    "A sequence number representing a specific generation of the desired state."
    labels: dict[str, str]
    "Map of string keys and values that can be used to organize and categorize (scope and select) objects."
    managedFields: list[ManagedFieldsEntry]
    "ManagedFields maps workflow-id and version to the set of fields that are managed by that workflow."
    name: str
    "Name must be unique within a namespace."
    namespace: str
    "Namespace defines the space within which each name must be unique."
    ownerReferences: list[OwnerReference]
    "List of objects depended by this object."
    resourceVersion: str
    "An opaque value that represents the internal version of this object that can be used by clients to determine when objects have changed."
    selfLink: str
    "Deprecated: selfLink is a legacy read-only field that is no longer populated by the system."
    uid: str
    "UID is the unique in time and space value for this object."


class OwnerReference(TypedDict, total=False):
    "OwnerReference contains enough information to let you identify an owning object."
    apiVersion: str
    "API version of the referent."
    blockOwnerDeletion: bool
    "If true, AND if the owner has the \"foregroundDeletion\" finalizer, then the owner cannot be deleted from the key-value store until this reference is removed."
    controller: bool
    "If true, this reference points to the managing controller."
    kind: str
    "Kind of the referent."
    name: str
    "Name of the referent."
    uid: str
    "UID of the referent."


class Preconditions(TypedDict, total=False):
    "Preconditions must be fulfilled before an operation (update, delete, etc.) is carried out."
    resourceVersion: str
    "Specifies the target ResourceVersion"
    uid: str
    "Specifies the target UID."
