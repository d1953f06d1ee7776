"""Types of apiextensions/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Any, Literal, Required, TypedDict

from .meta_v1 import NamedMeta, ObjectMeta

class CustomResourceColumnDefinition(TypedDict, total=False):
    "CustomResourceColumnDefinition specifies a column for server side printing."
    description: str
    "description is a human readable description of this column."
    format: str
    "format is an optional OpenAPI type definition for this column."
    jsonPath: str
    "jsonPath is a simple JSON path (i.e."
    name: str
    "name is a human readable name for the column."
    priority: int
    "priority is an integer defining the relative importance of this column compared to others."
    type: str
    "type is an OpenAPI type definition for this column."


class CustomResourceConversion(TypedDict, total=False):
    "CustomResourceConversion describes how to convert different versions of a CR."
    strategy: str
    "strategy specifies how custom resources are converted between versions."
    webhook: WebhookConversion
    "webhook describes how to call the conversion webhook."


class CustomResourceDefinition(TypedDict, total=False):
    "CustomResourceDefinition represents a resource that should be exposed on the API server."
    apiVersion: Required[Literal["apiextensions.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["CustomResourceDefinition"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    spec: CustomResourceDefinitionSpec
    "spec describes how the user wants the resources to appear"
    status: CustomResourceDefinitionStatus
    "status indicates the actual state of the CustomResourceDefinition"


class CustomResourceDefinitionCondition(TypedDict, total=False):
    "CustomResourceDefinitionCondition contains details for the current condition of this pod."
    lastTransitionTime: str
    "lastTransitionTime last time the condition transitioned from one status to another."
    message: str
    "message is a human-readable message indicating details about last transition."
    observedGeneration: int
    "observedGeneration represents the .metadata.generation that the condition was set based upon."
    reason: str
    "reason is a unique, one-word, CamelCase reason for the condition's last transition."
    status: str
    "status is the status of the condition."
    type: str
    "type is the type of the condition."


class CustomResourceDefinitionNames(TypedDict, total=False):
    "CustomResourceDefinitionNames indicates the names to serve this CustomResourceDefinition"
    categories: list[str]
    "categories is a list of grouped resources this custom resource belongs to (e.g."
    kind: str
    "kind is the serialized kind of the resource."
    listKind: str
    "listKind is the serialized kind of the list for this resource."
    plural: str
    "plural is the plural name of the resource to serve."
    shortNames: list[str]
    "shortNames are short names for the resource, exposed in API discovery documents, and used by clients to support invocations like `kubectl get <shortname>`."
    singular: str
    "singular is the singular name of the resource."


class CustomResourceDefinitionSpec(TypedDict, total=False):
    "CustomResourceDefinitionSpec describes how a user wants their resource to appear"
    conversion: CustomResourceConversion
    "conversion defines conversion settings for the CRD."
    group: str
    "group is the API group of the defined custom resource."
    names: CustomResourceDefinitionNames
    "names specify the resource and kind names for the custom resource."
    preserveUnknownFields: bool
    "preserveUnknownFields indicates that object fields which are not specified in the OpenAPI schema should be preserved when persisting to storage."
    scope: str
    "scope indicates whether the defined custom resource is cluster- or namespace-scoped."
    versions: list[CustomResourceDefinitionVersion]
    "versions is the list of all API versions of the defined custom resource."


class CustomResourceDefinitionStatus(TypedDict, total=False):
    "CustomResourceDefinitionStatus indicates the state of the CustomResourceDefinition"
    acceptedNames: CustomResourceDefinitionNames
    "acceptedNames are the names that are actually being used to serve discovery."
    conditions: list[CustomResourceDefinitionCondition]
    "conditions indicate state for particular aspects of a CustomResourceDefinition"
    observedGeneration: int
    "The generation observed by the CRD controller."
    storedVersions: list[str]
    "storedVersions lists all versions of CustomResources that were ever persisted."


class CustomResourceDefinitionVersion(TypedDict, total=False):
    "CustomResourceDefinitionVersion describes a version for CRD."
    additionalPrinterColumns: list[CustomResourceColumnDefinition]
    "additionalPrinterColumns specifies additional columns returned in Table output."
    deprecated: bool
    "deprecated indicates this version of the custom resource API is deprecated."
    deprecationWarning: str
    "deprecationWarning overrides the default warning returned to API clients."
    name: str
    "name is the version name, e.g."
    schema: CustomResourceValidation
    "schema describes the schema used for validation, pruning, and defaulting of this version of the custom resource."
    selectableFields: list[SelectableField]
    "selectableFields specifies paths to fields that may be used as field selectors."
    served: bool
    "served is a flag enabling/disabling this version from being served via REST APIs"
    storage: bool
    "storage indicates this version should be used when persisting custom resources to storage."
    subresources: CustomResourceSubresources
    "subresources specify what subresources this version of the defined custom resource have."


class CustomResourceSubresourceScale(TypedDict, total=False):
    "CustomResourceSubresourceScale defines how to serve the scale subresource for CustomResources."
    labelSelectorPath: str
    "labelSelectorPath defines the JSON path inside of a custom resource that corresponds to Scale `status.selector`."
    specReplicasPath: str
    "specReplicasPath defines the JSON path inside of a custom resource that corresponds to Scale `spec.replicas`."
    statusReplicasPath: str
    "statusReplicasPath defines the JSON path inside of a custom resource that corresponds to Scale `status.replicas`."


class CustomResourceSubresources(TypedDict, total=False):
    "CustomResourceSubresources defines the status and scale subresources for CustomResources."
    scale: CustomResourceSubresourceScale
    "scale indicates the custom resource should serve a `/scale` subresource that returns an `autoscaling/v1` Scale object."
    status: dict[str, Any]
    "status indicates the custom resource should serve a `/status` subresource."


class CustomResourceValidation(TypedDict, total=False):
    "CustomResourceValidation is a list of validation methods for CustomResources."
    openAPIV3Schema: JSONSchemaProps
    "openAPIV3Schema is the OpenAPI v3 schema to use for validation and pruning."


class ExternalDocumentation(TypedDict, total=False):
    "ExternalDocumentation allows referencing an external resource for extended documentation."
    description: str
    url: str


JSONSchemaProps = TypedDict(
    "JSONSchemaProps",
    {
        "$ref": "str",
        "$schema": "str",
        "additionalItems": "Any",
        "additionalProperties": "Any",
        "allOf": "list[JSONSchemaProps]",
        "anyOf": "list[JSONSchemaProps]",
        "default": "Any",
        "definitions": "dict[str, JSONSchemaProps]",
        "dependencies": "dict[str, Any]",
        "description": "str",
        "enum": "list[Any]",
        "example": "Any",
        "exclusiveMaximum": "bool",
        "exclusiveMinimum": "bool",
        "externalDocs": "ExternalDocumentation",
        "format": "str",
        "id": "str",
        "items": "Any",
        "maxItems": "int",
        "maxLength": "int",
        "maxProperties": "int",
        "maximum": "float",
        "minItems": "int",
        "minLength": "int",
        "minProperties": "int",
        "minimum": "float",
        "multipleOf": "float",
        "not": "JSONSchemaProps",
        "nullable": "bool",
        "oneOf": "list[JSONSchemaProps]",
        "pattern": "str",
        "patternProperties": "dict[str, JSONSchemaProps]",
        "properties": "dict[str, JSONSchemaProps]",
        "required": "list[str]",
        "title": "str",
        "type": "str",
        "uniqueItems": "bool",
        "x-kubernetes-embedded-resource": "bool",
        "x-kubernetes-int-or-string": "bool",
        "x-kubernetes-list-map-keys": "list[str]",
        "x-kubernetes-list-type": "str",
        "x-kubernetes-map-type": "str",
        "x-kubernetes-preserve-unknown-fields": "bool",
        "x-kubernetes-validations": "list[ValidationRule]",
    },
    total=False,
)


class SelectableField(TypedDict, total=False):
    "SelectableField specifies the JSON path of a field that may be used with field selectors."
    jsonPath: str
    "jsonPath is a simple JSON path which is evaluated against each custom resource to produce a field selector value."


class ServiceReference(TypedDict, total=False):
    "ServiceReference holds a reference to Service.legacy.k8s.io"
    name: str
    "name is the name of the service."
    namespace: str
    "namespace is the namespace of the service."
    path: str
    "path is an optional URL path at which the webhook will be contacted."
    port: int
    "port is an optional service port at which the webhook will be contacted."


class ValidationRule(TypedDict, total=False):
    "ValidationRule describes a validation rule written in the CEL expression language."
    fieldPath: str
    "fieldPath represents the field path returned when the validation fails."
    message: str
    "Message represents the message displayed when validation fails."
    messageExpression: str
    "MessageExpression declares a CEL expression that evaluates to the validation failure message that is returned when this rule fails."
    optionalOldSelf: bool
    "optionalOldSelf is used to opt a transition rule into evaluation even when the object is first created, or if the old object is missing the value."
    reason: str
    "reason provides a machine-readable validation failure reason that is returned to the caller when a request fails this validation rule."
    rule: str
    "Rule represents the expression which will be evaluated by CEL. ref: https://github.com/google/cel-spec The Rule is scoped to the location of the x-kubernetes-validations extension in the schema."


class WebhookClientConfig(TypedDict, total=False):
    "WebhookClientConfig contains the information to make a TLS connection with the webhook."
    caBundle: str
    "caBundle is a PEM encoded CA bundle which will be used to validate the webhook's server certificate."
    service: ServiceReference
    "service is a reference to the service for this webhook."
    url: str
    "url gives the location of the webhook, in standard URL form (`scheme://host:port/path`)."


class WebhookConversion(TypedDict, total=False):
    "WebhookConversion describes how to call a conversion webhook"
    clientConfig: WebhookClientConfig
    "clientConfig is the instructions for how to call the webhook if strategy is `Webhook`."
    conversionReviewVersions: list[str]
    "conversionReviewVersions is an ordered list of preferred `ConversionReview` versions the Webhook expects."
