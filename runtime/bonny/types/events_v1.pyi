"""Types of events/v1, by tools/builtin_types.py from the OpenAPI of Kubernetes."""

from typing import Literal, Required, TypedDict

from .core_v1 import EventSource, ObjectReference
from .meta_v1 import NamedMeta, ObjectMeta

class Event(TypedDict, total=False):
    "Event is a report of an event somewhere in the cluster."
    action: str
    "action is what action was taken/failed regarding to the regarding object."
    apiVersion: Required[Literal["events.k8s.io/v1"]]
    "APIVersion defines the versioned schema of this representation of an object."
    deprecatedCount: int
    "deprecatedCount is the deprecated field assuring backward compatibility with core.v1 Event type."
    deprecatedFirstTimestamp: str
    "deprecatedFirstTimestamp is the deprecated field assuring backward compatibility with core.v1 Event type."
    deprecatedLastTimestamp: str
    "deprecatedLastTimestamp is the deprecated field assuring backward compatibility with core.v1 Event type."
    deprecatedSource: EventSource
    "deprecatedSource is the deprecated field assuring backward compatibility with core.v1 Event type."
    eventTime: str
    "eventTime is the time when this Event was first observed."
    kind: Required[Literal["Event"]]
    "Kind is a string value representing the REST resource this object represents."
    metadata: Required[NamedMeta]
    "Standard object's metadata."
    note: str
    "note is a human-readable description of the status of this operation."
    reason: str
    "reason is why the action was taken."
    regarding: ObjectReference
    "regarding contains the object this Event is about."
    related: ObjectReference
    "related is the optional secondary object for more complex actions."
    reportingController: str
    "reportingController is the name of the controller that emitted this Event, e.g."
    reportingInstance: str
    "reportingInstance is the ID of the controller instance, e.g."
    series: EventSeries
    "series is data about the Event series this event represents or nil if it's a singleton Event."
    type: str
    "type is the type of this event (Normal, Warning), new types could be added in the future."


class EventSeries(TypedDict, total=False):
    "EventSeries contain information on series of events, i.e."
    count: int
    "count is the number of occurrences in this series up to the last heartbeat time."
    lastObservedTime: str
    "lastObservedTime is the time when last Event from the series was seen before last heartbeat."
