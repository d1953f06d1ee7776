"""Types of admissionregistration/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .meta_v1 import Condition, LabelSelector, NamedMeta, ObjectMeta

class ApplyConfiguration(TypedDict, total=False):
    "ApplyConfiguration defines the desired configuration values of an object."
    expression: str
    "expression will be evaluated by CEL to create an apply configuration."


class AuditAnnotation(TypedDict, total=False):
    "AuditAnnotation describes how to produce an audit annotation for an API request."
    key: str
    "key specifies the audit annotation key."
    valueExpression: str
    "valueExpression represents the expression which is evaluated by CEL to produce an audit annotation value."


class ExpressionWarning(TypedDict, total=False):
    "ExpressionWarning is a warning information that targets a specific expression."
    fieldRef: str
    "fieldRef is the path to the field that refers to the expression."
    warning: str
    "warning contains the content of type checking information in a human-readable form."


class JSONPatch(TypedDict, total=False):
    "JSONPatch defines a JSON Patch."
    expression: str
    "expression will be evaluated by CEL to create a [JSON patch](https://jsonpatch.com/)."


class MatchCondition(TypedDict, total=False):
    "MatchCondition represents a condition which must by fulfilled for a request to be sent to a webhook."
    expression: str
    "expression represents the expression which will be evaluated by CEL. Must evaluate to bool."
    name: str
    "name is an identifier for this match condition, used for strategic merging of MatchConditions, as well as providing an identifier for logging purposes."


class MatchResources(TypedDict, total=False):
    "MatchResources decides whether to run the admission control policy on an object based on whether it meets the match criteria."
    excludeResourceRules: list[NamedRuleWithOperations]
    "excludeResourceRules describes what operations on what resources/subresources the ValidatingAdmissionPolicy should not care about."
    matchPolicy: str
    "matchPolicy defines how the \"MatchResources\" list is used to match incoming requests."
    namespaceSelector: LabelSelector
    "namespaceSelector decides whether to run the admission control policy on an object based on whether the namespace for that object matches the selector."
    objectSelector: LabelSelector
    "objectSelector decides whether to run the validation based on if the object has matching labels."
    resourceRules: list[NamedRuleWithOperations]
    "resourceRules describes what operations on what resources/subresources the ValidatingAdmissionPolicy matches."


class MutatingAdmissionPolicy(TypedDict, total=False):
    "MutatingAdmissionPolicy describes the definition of an admission mutation policy that mutates the object coming into admission chain."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["MutatingAdmissionPolicy"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    spec: MutatingAdmissionPolicySpec
    "spec defines the desired behavior of the MutatingAdmissionPolicy."


class MutatingAdmissionPolicyBinding(TypedDict, total=False):
    "MutatingAdmissionPolicyBinding binds the MutatingAdmissionPolicy with parametrized resources."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["MutatingAdmissionPolicyBinding"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    spec: MutatingAdmissionPolicyBindingSpec
    "spec defines the desired behavior of the MutatingAdmissionPolicyBinding."


class MutatingAdmissionPolicyBindingSpec(TypedDict, total=False):
    "MutatingAdmissionPolicyBindingSpec defines the specification of the MutatingAdmissionPolicyBinding."
    matchResources: MatchResources
    "matchResources limits what resources match this binding and may be mutated by it."
    paramRef: ParamRef
    "paramRef specifies the parameter resource used to configure the admission control policy."
    policyName: str
    "policyName references a MutatingAdmissionPolicy name which the MutatingAdmissionPolicyBinding binds to."


class MutatingAdmissionPolicySpec(TypedDict, total=False):
    "MutatingAdmissionPolicySpec defines the desired behavior of the admission policy."
    failurePolicy: str
    "failurePolicy defines how to handle failures for the admission policy."
    matchConditions: list[MatchCondition]
    "matchConditions is a list of conditions that must be met for a request to be validated."
    matchConstraints: MatchResources
    "matchConstraints specifies what resources this policy is designed to validate."
    mutations: list[Mutation]
    "mutations contain operations to perform on matching objects."
    paramKind: ParamKind
    "paramKind specifies the kind of resources used to parameterize this policy."
    reinvocationPolicy: str
    "reinvocationPolicy indicates whether mutations may be called multiple times per MutatingAdmissionPolicyBinding as part of a single admission evaluation."
    variables: list[Variable]
    "variables contain definitions of variables that can be used in composition of other expressions."


class MutatingWebhook(TypedDict, total=False):
    "MutatingWebhook describes an admission webhook and the resources and operations it applies to."
    admissionReviewVersions: list[str]
    "admissionReviewVersions is an ordered list of preferred `AdmissionReview` versions the Webhook expects."
    clientConfig: WebhookClientConfig
    "clientConfig defines how to communicate with the hook."
    failurePolicy: str
    "failurePolicy defines how unrecognized errors from the admission endpoint are handled - allowed values are Ignore or Fail."
    matchConditions: list[MatchCondition]
    "matchConditions is a list of conditions that must be met for a request to be sent to this webhook."
    matchPolicy: str
    "matchPolicy defines how the \"rules\" list is used to match incoming requests."
    name: str
    "name is the name of the admission webhook."
    namespaceSelector: LabelSelector
    "namespaceSelector decides whether to run the webhook on an object based on whether the namespace for that object matches the selector."
    objectSelector: LabelSelector
    "objectSelector decides whether to run the webhook based on if the object has matching labels."
    reinvocationPolicy: str
    "reinvocationPolicy indicates whether this webhook should be called multiple times as part of a single admission evaluation."
    rules: list[RuleWithOperations]
    "rules describes what operations on what resources/subresources the webhook cares about."
    sideEffects: str
    "sideEffects states whether this webhook has side effects."
    timeoutSeconds: int
    "timeoutSeconds specifies the timeout for this webhook."


class MutatingWebhookConfiguration(TypedDict, total=False):
    "MutatingWebhookConfiguration describes the configuration of and admission webhook that accept or reject and may change the object."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["MutatingWebhookConfiguration"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    webhooks: list[MutatingWebhook]
    "webhooks is a list of webhooks and the affected resources and operations."


class Mutation(TypedDict, total=False):
    "Mutation specifies the CEL expression which is used to apply the Mutation."
    applyConfiguration: ApplyConfiguration
    "applyConfiguration defines the desired configuration values of an object."
    jsonPatch: JSONPatch
    "jsonPatch defines a [JSON patch](https://jsonpatch.com/) operation to perform a mutation to the object."
    patchType: str
    "patchType indicates the patch strategy used."


class NamedRuleWithOperations(TypedDict, total=False):
    "NamedRuleWithOperations is a tuple of Operations and Resources with ResourceNames."
    apiGroups: list[str]
    "apiGroups is the API groups the resources belong to."
    apiVersions: list[str]
    "apiVersions is the API versions the resources belong to."
    operations: list[str]
    "operations is the operations the admission hook cares about - CREATE, UPDATE, DELETE, CONNECT or * for all of those operations and any future admission operations that are added."
    resourceNames: list[str]
    "resourceNames is an optional white list of names that the rule applies to."
    resources: list[str]
    "resources is a list of resources this rule applies to."
    scope: str
    "scope specifies the scope of this rule."


class ParamKind(TypedDict, total=False):
    "ParamKind is a tuple of Group Kind and Version."
    apiVersion: str
    "apiVersion is the API group version the resources belong to."
    kind: str
    "kind is the API kind the resources belong to."


class ParamRef(TypedDict, total=False):
    "ParamRef describes how to locate the params to be used as input to expressions of rules applied by a policy binding."
    name: str
    "name is the name of the resource being referenced."
    namespace: str
    "namespace is the namespace of the referenced resource."
    parameterNotFoundAction: str
    "parameterNotFoundAction controls the behavior of the binding when the resource exists, and name or selector is valid, but there are no parameters matched by the binding."
    selector: LabelSelector
    "selector can be used to match multiple param objects based on their labels."


class RuleWithOperations(TypedDict, total=False):
    "RuleWithOperations is a tuple of Operations and Resources."
    apiGroups: list[str]
    "apiGroups is the API groups the resources belong to."
    apiVersions: list[str]
    "apiVersions is the API versions the resources belong to."
    operations: list[str]
    "operations is the operations the admission hook cares about - CREATE, UPDATE, DELETE, CONNECT or * for all of those operations and any future admission operations that are added."
    resources: list[str]
    "resources is a list of resources this rule applies to."
    scope: str
    "scope specifies the scope of this rule."


class ServiceReference(TypedDict, total=False):
    "ServiceReference holds a reference to Service.legacy.k8s.io"
    name: str
    "name is the name of the service."
    namespace: str
    "namespace is the namespace of the service."
    path: str
    "path is an optional URL path which will be sent in any request to this service."
    port: int
    "port is the port on the service that hosts the webhook."


class TypeChecking(TypedDict, total=False):
    "TypeChecking contains results of type checking the expressions in the ValidatingAdmissionPolicy"
    expressionWarnings: list[ExpressionWarning]
    "expressionWarnings contains the type checking warnings for each expression."


class ValidatingAdmissionPolicy(TypedDict, total=False):
    "ValidatingAdmissionPolicy describes the definition of an admission validation policy that accepts or rejects an object without changing it."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ValidatingAdmissionPolicy"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    spec: ValidatingAdmissionPolicySpec
    "spec defines the desired behavior of the ValidatingAdmissionPolicy."
    status: ValidatingAdmissionPolicyStatus
    "status represents the current status of the ValidatingAdmissionPolicy, including warnings that are useful to determine if the policy behaves in the expected way."


class ValidatingAdmissionPolicyBinding(TypedDict, total=False):
    "ValidatingAdmissionPolicyBinding binds the ValidatingAdmissionPolicy with paramerized resources."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ValidatingAdmissionPolicyBinding"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    spec: ValidatingAdmissionPolicyBindingSpec
    "spec defines the desired behavior of the ValidatingAdmissionPolicyBinding."


class ValidatingAdmissionPolicyBindingSpec(TypedDict, total=False):
    "ValidatingAdmissionPolicyBindingSpec is the specification of the ValidatingAdmissionPolicyBinding."
    matchResources: MatchResources
    "matchResources declares what resources match this binding and will be validated by it."
    paramRef: ParamRef
    "paramRef specifies the parameter resource used to configure the admission control policy."
    policyName: str
    "policyName references a ValidatingAdmissionPolicy name which the ValidatingAdmissionPolicyBinding binds to."
    validationActions: list[str]
    "validationActions declares how Validations of the referenced ValidatingAdmissionPolicy are enforced."


class ValidatingAdmissionPolicySpec(TypedDict, total=False):
    "ValidatingAdmissionPolicySpec is the specification of the desired behavior of the AdmissionPolicy."
    auditAnnotations: list[AuditAnnotation]
    "auditAnnotations contains CEL expressions which are used to produce audit annotations for the audit event of the API request."
    failurePolicy: str
    "failurePolicy defines how to handle failures for the admission policy."
    matchConditions: list[MatchCondition]
    "matchConditions is a list of conditions that must be met for a request to be validated."
    matchConstraints: MatchResources
    "matchConstraints specifies what resources this policy is designed to validate."
    paramKind: ParamKind
    "paramKind specifies the kind of resources used to parameterize this policy."
    validations: list[Validation]
    "validations contain CEL expressions which is used to apply the validation."
    variables: list[Variable]
    "variables contain definitions of variables that can be used in composition of other expressions."


class ValidatingAdmissionPolicyStatus(TypedDict, total=False):
    "ValidatingAdmissionPolicyStatus represents the status of an admission validation policy."
    conditions: list[Condition]
    "conditions represent the latest available observations of a policy's current state."
    observedGeneration: int
    "observedGeneration is the generation observed by the controller."
    typeChecking: TypeChecking
    "typeChecking contains the results of type checking for each expression."


class ValidatingWebhook(TypedDict, total=False):
    "ValidatingWebhook describes an admission webhook and the resources and operations it applies to."
    admissionReviewVersions: list[str]
    "admissionReviewVersions is an ordered list of preferred `AdmissionReview` versions the Webhook expects."
    clientConfig: WebhookClientConfig
    "clientConfig defines how to communicate with the hook."
    failurePolicy: str
    "failurePolicy defines how unrecognized errors from the admission endpoint are handled - allowed values are Ignore or Fail."
    matchConditions: list[MatchCondition]
    "matchConditions is a list of conditions that must be met for a request to be sent to this webhook."
    matchPolicy: str
    "matchPolicy defines how the \"rules\" list is used to match incoming requests."
    name: str
    "name is the name of the admission webhook."
    namespaceSelector: LabelSelector
    "namespaceSelector decides whether to run the webhook on an object based on whether the namespace for that object matches the selector."
    objectSelector: LabelSelector
    "objectSelector decides whether to run the webhook based on if the object has matching labels."
    rules: list[RuleWithOperations]
    "rules describes what operations on what resources/subresources the webhook cares about."
    sideEffects: str
    "sideEffects states whether this webhook has side effects."
    timeoutSeconds: int
    "timeoutSeconds specifies the timeout for this webhook."


class ValidatingWebhookConfiguration(TypedDict, total=False):
    "ValidatingWebhookConfiguration describes the configuration of and admission webhook that accept or reject and object without changing it."
    apiVersion: Required[Literal["admissionregistration.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["ValidatingWebhookConfiguration"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "metadata is the standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata."
    webhooks: list[ValidatingWebhook]
    "webhooks is a list of webhooks and the affected resources and operations."


class Validation(TypedDict, total=False):
    "Validation specifies the CEL expression which is used to apply the validation."
    expression: str
    "expression represents the expression which will be evaluated by CEL. ref: https://github.com/google/cel-spec CEL expressions have access to the contents of the API request/response, organized into CEL variables as well as some other useful variables:"
    message: str
    "message represents the message displayed when validation fails."
    messageExpression: str
    "messageExpression declares a CEL expression that evaluates to the validation failure message that is returned when this rule fails."
    reason: str
    "reason represents a machine-readable description of why this validation failed."


class Variable(TypedDict, total=False):
    "Variable is the definition of a variable that is used for composition."
    expression: str
    "expression is the expression that will be evaluated as the value of the variable."
    name: str
    "name is the name of the variable."


class WebhookClientConfig(TypedDict, total=False):
    "WebhookClientConfig contains the information to make a TLS connection with the webhook"
    caBundle: str
    "caBundle is a PEM encoded CA bundle which will be used to validate the webhook's server certificate."
    service: ServiceReference
    "service is a reference to the service for this webhook."
    url: str
    "url gives the location of the webhook, in standard URL form (`scheme://host:port/path`)."
