"""Compat: more names of `Bonny.Axn` and `:telemetry`, for operators that are ported from Elixir.

    from bonny import compat

    class WidgetController(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None: ...

You need it for hooks, for sending before a handler returns, and for three steps. A new operator does not need it: a
handler registers, and the steps apply.
"""

from .axn import AfterProcessed as AfterProcessed
from .axn import Axn as Axn
from .axn import BeforeApplyDescendants as BeforeApplyDescendants
from .axn import BeforeApplyStatus as BeforeApplyStatus
from .axn import BeforeEmitEvent as BeforeEmitEvent
from .axn import State as State
from .controller import Controller as Controller
from .steps import AddManagedByLabelToDescendants as AddManagedByLabelToDescendants
from .steps import AddMissingGVK as AddMissingGVK
from .steps import SkipObservedGenerations as SkipObservedGenerations
from .steps import step as step
from .telemetry import LOGGER_ID as LOGGER_ID
from .telemetry import attach_logger as attach_logger
from .telemetry import measure as measure
from .telemetry import metadata as metadata
from .telemetry import span as span
