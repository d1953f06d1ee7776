"""Typed APIs: everything needed to declare your own kinds.

    from bonny.api import AGE, Column, Field, Spec, Status, Version, WithConditions, WithObservedGeneration

Elsewhere: other kinds (`bonny.kinds`), objects of other versions (`conversion`).
"""

from pydantic import Field

from ..kinds import Scope
from .markers import BuiltIn, Embedded, ListAtomic, ListMap, ListSet, MapAtomic, PreserveUnknown
from .model import Model
from .rules import IMMUTABLE, Rule, at_least_one_of, at_most_one_of, exactly_one_of, union
from .status import Condition, Spec, Status, WithConditions, WithObservedGeneration
from .values import Duration, Int32, Int64, IntOrString, Quantity, duration_seconds, quantity_value
from .version import AGE, Column, Scale, Version

__all__ = [
    "AGE",
    "IMMUTABLE",
    "BuiltIn",
    "Column",
    "Condition",
    "Duration",
    "Embedded",
    "Field",
    "Int32",
    "Int64",
    "IntOrString",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "MapAtomic",
    "Model",
    "PreserveUnknown",
    "Quantity",
    "Rule",
    "Scale",
    "Scope",
    "Spec",
    "Status",
    "Version",
    "WithConditions",
    "WithObservedGeneration",
    "at_least_one_of",
    "at_most_one_of",
    "duration_seconds",
    "exactly_one_of",
    "quantity_value",
    "union",
]
