"""bonny: Kubernetes operators in Python; the names that a user needs.

Each is loaded on first use (PEP 562): `invoke --list` and other light work does not pay for what it does not use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import AGE as AGE
    from .api import Column as Column
    from .api import Field as Field
    from .api import Rule as Rule
    from .api import Spec as Spec
    from .api import Status as Status
    from .api import Version as Version
    from .api import WithConditions as WithConditions
    from .api import WithObservedGeneration as WithObservedGeneration
    from .axn import Axn as Axn
    from .controller import Controller as Controller
    from .core.queue import Reason as Reason
    from .core.records import Action as Action
    from .deploy import Deploy as Deploy
    from .deploy import FromConfigMap as FromConfigMap
    from .deploy import FromSecret as FromSecret
    from .errors import Retry as Retry
    from .errors import Terminal as Terminal
    from .errors import Throttled as Throttled
    from .errors import Wait as Wait
    from .kinds import Kind as Kind
    from .kinds import List as List
    from .kinds import Owned as Owned
    from .kinds import Related as Related
    from .kinds import Scope as Scope
    from .operator import Operator as Operator
    from .readiness import is_ready as is_ready
    from .resource import Key as Key
    from .resource import Resource as Resource
    from .resource import key_of as key_of
    from .run.config import Config as Config
    from .run.discovery import discover as discover
    from .servers.periodic import Next as Next
    from .servers.periodic import PeriodicTask as PeriodicTask
    from .servers.periodic import Stop as Stop
    from .servers.periodic import TaskRun as TaskRun
    from .servers.reconciler import Reconciler as Reconciler
    from .servers.watcher import Watcher as Watcher

__version__ = "0.1.0"

_MODULES = {
    "api": ("AGE", "Column", "Field", "Rule", "Spec", "Status", "Version", "WithConditions", "WithObservedGeneration"),
    "axn": ("Axn",),
    "controller": ("Controller",),
    "core.queue": ("Reason",),
    "core.records": ("Action",),
    "deploy": ("Deploy", "FromConfigMap", "FromSecret"),
    "errors": ("Retry", "Terminal", "Throttled", "Wait"),
    "kinds": ("Kind", "List", "Owned", "Related", "Scope"),
    "operator": ("Operator",),
    "readiness": ("is_ready",),
    "resource": ("Key", "Resource", "key_of"),
    "run.config": ("Config",),
    "run.discovery": ("discover",),
    "servers.periodic": ("Next", "PeriodicTask", "Stop", "TaskRun"),
    "servers.reconciler": ("Reconciler",),
    "servers.watcher": ("Watcher",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", *sorted(_HOMES)]  # noqa: PLE0604  the same names twice would drift apart


if not TYPE_CHECKING:  # type checkers would take any name for one of these

    def __getattr__(name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'bonny' has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{home}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
