"""Telemetry: `events` for listeners, `logging` on stderr, `prometheus` for /metrics, `tracing` by OpenTelemetry."""

from .events import EVENTS as EVENTS
from .events import attach as attach
from .events import attach_many as attach_many
from .events import detach as detach
from .events import execute as execute
from .events import lifetime as lifetime
from .events import set_metadata as set_metadata
