"""Typed APIs: everything needed to declare a kind of one's own.

    from bonny.api import AGE, Column, Field, Spec, Status, Version, WithConditions, WithObservedGeneration

Elsewhere: kinds of others (`bonny.kinds`), CustomResourceDefinitions (`bonny.api.crd`).
"""

from pydantic import Field

from ..kinds import Scope
from .markers import PreserveUnknown
from .model import Model
from .status import Condition, Spec, Status, WithConditions, WithObservedGeneration
from .version import AGE, Column, Rule, Version

__all__ = [
    "AGE",
    "Column",
    "Condition",
    "Field",
    "Model",
    "PreserveUnknown",
    "Rule",
    "Scope",
    "Spec",
    "Status",
    "Version",
    "WithConditions",
    "WithObservedGeneration",
]
