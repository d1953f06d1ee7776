"""StagedController: a controller whose handlers go through stages, which are conditions of its objects."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from ..controller import Controller
from ..core.conditions import RECONCILED
from ..engine.reconcile import Reconcile
from ..errors import OptionError
from ..naming import check_tuple
from .axn import StagedAxn

V_co = TypeVar("V_co", covariant=True)


def _is_camel_case(name: str) -> bool:
    return name.isascii() and name.isalnum() and name[0].isupper()


class StagedController(Controller[V_co, StagedAxn[V_co]]):
    """A `bonny.Controller` with `stages`; its handlers get a `StagedAxn`."""

    stages: ClassVar[tuple[str, ...]] = ()
    """The stages of a long set-up, in order: names of conditions, which `axn.stage` sets. Default: none."""

    axn_class: ClassVar[type[Reconcile[Any]]] = StagedAxn

    @classmethod
    def _check(cls) -> None:
        super()._check()
        check_tuple(cls.__name__, "stages", cls.stages, str, '"DatabaseReady"')
        if len({*cls.stages, RECONCILED}) <= len(cls.stages) or not all(map(_is_camel_case, cls.stages)):
            raise OptionError(
                f"{cls.__name__}.stages is {cls.stages}: write names in CamelCase, each once, and not {RECONCILED}, "
                "which is the runtime's own condition"
            )
        kinds = cls.resource if isinstance(cls.resource, tuple) else (cls.resource,)
        if cls.stages and not all(isinstance(each, type) and each.has_conditions() for each in kinds):
            raise OptionError(f"{cls.__name__}.stages are conditions: let the status class inherit WithConditions")
