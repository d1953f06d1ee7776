"""Discovery: finds what an operator serves in its packages, so that a new file takes effect without another edit."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any

from ..api import Version
from ..controller import Controller
from ..extras import Declaration, Part
from ..servers.periodic import PeriodicTask
from ..servers.visitor import ObjectVisitor


def discover(package: ModuleType) -> tuple[Any, ...]:
    """Import every module below `package`; return its controllers, reconcilers, watchers, classes and declarations of
    extras, versions and periodic tasks, ordered by module and name, for `Operator(controllers=...)` and `crds=`.

    A class is found where it is defined, not where it is imported. Left out are base classes: names that start with an
    underscore, versions without a kind, servers without an operation, and incomplete classes of extras, such as
    schedulers without a name.
    Raises: what importing a module raises.
    """
    names = sorted(module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    # A dictionary, because one object may have several names.
    parts = {
        id(value): value
        for module in (package, *map(importlib.import_module, names))
        for name, value in sorted(vars(module).items())
        if not name.startswith("_") and _is_part(value, module)
    }
    return tuple(parts.values())


def _is_part(value: object, module: ModuleType) -> bool:
    if isinstance(value, PeriodicTask | Declaration):
        return True
    if not isinstance(value, type) or value.__module__ != module.__name__ or value.__name__.startswith("_"):
        return False
    if issubclass(value, Version):
        return hasattr(value, "kind")
    if issubclass(value, Part):
        return value.is_complete()
    return issubclass(value, Controller) or (issubclass(value, ObjectVisitor) and hasattr(value, "operation"))
