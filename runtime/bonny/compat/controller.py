"""Controller: a controller whose handlers and steps get a `compat.Axn`.

    class WidgetController(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.register_before_apply_status(...)

The steps of its operator get one, too. A step of an operator that needs one is marked with `compat.step`, and every
controller of that operator is of this class.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from .. import controller as core
from ..engine.reconcile import Reconcile
from .axn import Axn

V_co = TypeVar("V_co", covariant=True)


class Controller(core.Controller[V_co, Axn[V_co]]):
    """A `bonny.Controller` with `axn_class = compat.Axn`."""

    axn_class: ClassVar[type[Reconcile[Any]]] = Axn
