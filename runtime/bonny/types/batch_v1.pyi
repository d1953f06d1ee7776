"""Types of batch/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import ObjectReference, PodTemplateSpec
from .meta_v1 import LabelSelector, NamedMeta, ObjectMeta

class CronJob(TypedDict, total=False):
    "CronJob represents the configuration of a single cron job."
    apiVersion: Required[Literal["batch/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["CronJob"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: CronJobSpec
    "Specification of the desired behavior of a cron job, including the schedule."
    status: CronJobStatus
    "Current status of a cron job."


class CronJobSpec(TypedDict, total=False):
    "CronJobSpec describes how the job execution will look like and when it will actually run."
    concurrencyPolicy: str
    "Specifies how to treat concurrent executions of a Job."
    failedJobsHistoryLimit: int
    "The number of failed finished jobs to retain."
    jobTemplate: JobTemplateSpec
    "Specifies the job that will be created when executing a CronJob."
    schedule: str
    "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron."
    startingDeadlineSeconds: int
    "Optional deadline in seconds for starting the job if it misses scheduled time for any reason."
    successfulJobsHistoryLimit: int
    "The number of successful finished jobs to retain."
    suspend: bool
    "This flag tells the controller to suspend subsequent executions, it does not apply to already started executions."
    timeZone: str
    "The time zone name for the given schedule, see https://en.wikipedia.org/wiki/List_of_tz_database_time_zones."


class CronJobStatus(TypedDict, total=False):
    "CronJobStatus represents the current state of a cron job."
    active: list[ObjectReference]
    "A list of pointers to currently running jobs."
    lastScheduleTime: str
    "Information when was the last time the job was successfully scheduled."
    lastSuccessfulTime: str
    "Information when was the last time the job successfully completed."


class Job(TypedDict, total=False):
    "Job represents the configuration of a single job."
    apiVersion: Required[Literal["batch/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    kind: Required[Literal["Job"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    spec: JobSpec
    "Specification of the desired behavior of a job."
    status: JobStatus
    "Current status of a job."


class JobCondition(TypedDict, total=False):
    "JobCondition describes current state of a job."
    lastProbeTime: str
    "Last time the condition was checked."
    lastTransitionTime: str
    "Last time the condition transit from one status to another."
    message: str
    "Human readable message indicating details about last transition."
    reason: str
    "(brief) reason for the condition's last transition."
    status: str
    "Status of the condition, one of True, False, Unknown."
    type: str
    "Type of job condition, Complete or Failed."


class JobSpec(TypedDict, total=False):
    "JobSpec describes how the job execution will look like."
    activeDeadlineSeconds: int
    "Specifies the duration in seconds relative to the startTime that the job may be continuously active before the system tries to terminate it; value must be positive integer."
    backoffLimit: int
    "Specifies the number of retries before marking this job failed."
    backoffLimitPerIndex: int
    "Specifies the limit for the number of retries within an index before marking this index as failed."
    completionMode: str
    "completionMode specifies how Pod completions are tracked."
    completions: int
    "Specifies the desired number of successfully finished pods the job should be run with."
    managedBy: str
    "ManagedBy field indicates the controller that manages a Job."
    manualSelector: bool
    "manualSelector controls generation of pod labels and pod selectors."
    maxFailedIndexes: int
    "Specifies the maximal number of failed indexes before marking the Job as failed, when backoffLimitPerIndex is set."
    parallelism: int
    "Specifies the maximum desired number of pods the job should run at any given time."
    podFailurePolicy: PodFailurePolicy
    "Specifies the policy of handling failed pods."
    podReplacementPolicy: str
    "podReplacementPolicy specifies when to create replacement Pods."
    selector: LabelSelector
    "A label query over pods that should match the pod count."
    successPolicy: SuccessPolicy
    "successPolicy specifies the policy when the Job can be declared as succeeded."
    suspend: bool
    "suspend specifies whether the Job controller should create Pods or not."
    template: PodTemplateSpec
    "Describes the pod that will be created when executing a job."
    ttlSecondsAfterFinished: int
    "ttlSecondsAfterFinished limits the lifetime of a Job that has finished execution (either Complete or Failed)."


class JobStatus(TypedDict, total=False):
    "JobStatus represents the current state of a Job."
    active: int
    "The number of pending and running pods which are not terminating (without a deletionTimestamp)."
    completedIndexes: str
    "completedIndexes holds the completed indexes when .spec.completionMode = \"Indexed\" in a text format."
    completionTime: str
    "Represents time when the job was completed."
    conditions: list[JobCondition]
    "The latest available observations of an object's current state."
    failed: int
    "The number of pods which reached phase Failed."
    failedIndexes: str
    "FailedIndexes holds the failed indexes when spec.backoffLimitPerIndex is set."
    ready: int
    "The number of active pods which have a Ready condition and are not terminating (without a deletionTimestamp)."
    startTime: str
    "Represents time when the job controller started processing a job."
    succeeded: int
    "The number of pods which reached phase Succeeded."
    terminating: int
    "The number of pods which are terminating (in phase Pending or Running and have a deletionTimestamp)."
    uncountedTerminatedPods: UncountedTerminatedPods
    "uncountedTerminatedPods holds the UIDs of Pods that have terminated but the job controller hasn't yet accounted for in the status counters."


class JobTemplateSpec(TypedDict, total=False):
    "JobTemplateSpec describes the data a Job should have when created from a template"
    metadata: ObjectMeta
    "Standard object's metadata of the jobs created from this template."
    spec: JobSpec
    "Specification of the desired behavior of the job."


class PodFailurePolicy(TypedDict, total=False):
    "PodFailurePolicy describes how failed pods influence the backoffLimit."
    rules: list[PodFailurePolicyRule]
    "A list of pod failure policy rules."


class PodFailurePolicyOnExitCodesRequirement(TypedDict, total=False):
    "PodFailurePolicyOnExitCodesRequirement describes the requirement for handling a failed pod based on its container exit codes."
    containerName: str
    "Restricts the check for exit codes to the container with the specified name."
    operator: str
    "Represents the relationship between the container exit code(s) and the specified values."
    values: list[int]
    "Specifies the set of values."


class PodFailurePolicyOnPodConditionsPattern(TypedDict, total=False):
    "PodFailurePolicyOnPodConditionsPattern describes a pattern for matching an actual pod condition type."
    status: str
    "Specifies the required Pod condition status."
    type: str
    "Specifies the required Pod condition type."


class PodFailurePolicyRule(TypedDict, total=False):
    "PodFailurePolicyRule describes how a pod failure is handled when the requirements are met."
    action: str
    "Specifies the action taken on a pod failure when the requirements are satisfied."
    onExitCodes: PodFailurePolicyOnExitCodesRequirement
    "Represents the requirement on the container exit codes."
    onPodConditions: list[PodFailurePolicyOnPodConditionsPattern]
    "Represents the requirement on the pod conditions."


class SuccessPolicy(TypedDict, total=False):
    "SuccessPolicy describes when a Job can be declared as succeeded based on the success of some indexes."
    rules: list[SuccessPolicyRule]
    "rules represents the list of alternative rules for the declaring the Jobs as successful before `.status.succeeded >= .spec.completions`."


class SuccessPolicyRule(TypedDict, total=False):
    "SuccessPolicyRule describes rule for declaring a Job as succeeded."
    succeededCount: int
    "succeededCount specifies the minimal required size of the actual set of the succeeded indexes for the Job."
    succeededIndexes: str
    "succeededIndexes specifies the set of indexes which need to be contained in the actual set of the succeeded indexes for the Job."


class UncountedTerminatedPods(TypedDict, total=False):
    "UncountedTerminatedPods holds UIDs of Pods that have terminated but haven't been accounted in Job status counters."
    failed: list[str]
    "failed holds UIDs of failed Pods."
    succeeded: list[str]
    "succeeded holds UIDs of succeeded Pods."
