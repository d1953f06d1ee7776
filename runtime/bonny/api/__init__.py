"""Typed APIs: everything needed to declare your own kinds.

    from bonny.api import AGE, Column, Field, Spec, Status, Version, WithConditions, WithObservedGeneration

Elsewhere: other kinds (`bonny.kinds`), objects of other versions (`conversion`).
"""

from pydantic import Field as Field

from ..kinds import Scope as Scope
from .markers import AsIs as AsIs
from .markers import BuiltIn as BuiltIn
from .markers import Embedded as Embedded
from .markers import ListAtomic as ListAtomic
from .markers import ListMap as ListMap
from .markers import ListSet as ListSet
from .markers import MapAtomic as MapAtomic
from .markers import Nullable as Nullable
from .markers import PreserveUnknown as PreserveUnknown
from .markers import schemas_beside as schemas_beside
from .model import Model as Model
from .rules import IMMUTABLE as IMMUTABLE
from .rules import Rule as Rule
from .rules import at_least_one_of as at_least_one_of
from .rules import at_most_one_of as at_most_one_of
from .rules import exactly_one_of as exactly_one_of
from .rules import union as union
from .status import Condition as Condition
from .status import Spec as Spec
from .status import Status as Status
from .status import WithConditions as WithConditions
from .status import WithObservedGeneration as WithObservedGeneration
from .values import Base64 as Base64
from .values import Duration as Duration
from .values import Int32 as Int32
from .values import Int64 as Int64
from .values import IntOrString as IntOrString
from .values import Quantity as Quantity
from .values import base64_value as base64_value
from .values import duration_seconds as duration_seconds
from .values import quantity_value as quantity_value
from .version import AGE as AGE
from .version import Column as Column
from .version import Scale as Scale
from .version import Version as Version
