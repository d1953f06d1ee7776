"""Discovery: finds what an operator serves in its packages, so that a new file takes effect without another edit."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from ..api import Version
from ..controller import Controller
from ..operator import is_scheduler
from ..servers.periodic import PeriodicTask
from ..servers.server import Server

__all__ = ["discover"]


def discover(package: ModuleType) -> tuple[Any, ...]:
    """Import every module below `package`; return what they define, in order: controllers, reconcilers, watchers,
    schedulers and version classes, and periodic tasks.

    A class counts where it is defined, not where it is imported. Bases that others share do not count: classes whose
    name starts with an underscore, versions without a kind, servers without an operation, schedulers without a name.
    Raises: what importing a module raises.
    """
    names = sorted(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    modules = [package, *map(importlib.import_module, names)]
    # A dictionary, because a second name for a thing does not make it two.
    found = {
        id(value): value
        for module in modules
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and _counts(value, module)
    }
    return tuple(found.values())


def _counts(found: object, module: ModuleType) -> bool:
    if isinstance(found, PeriodicTask):
        return True
    if not isinstance(found, type) or found.__module__ != module.__name__ or found.__name__.startswith("_"):
        return False
    if issubclass(found, Version):
        return hasattr(found, "kind")
    if is_scheduler(found):
        return bool(found.name)
    return issubclass(found, Controller) or (issubclass(found, Server) and hasattr(found, "operation"))
