"""Controller: a controller whose handlers and steps get a `compat.Axn`.

    class WidgetController(compat.Controller[Widget]):
        async def reconcile(self, axn: compat.Axn[Widget]) -> None:
            axn.register_before_apply_status(...)

The steps of its operator get one, too: an operator whose own steps use hooks has only controllers of this class.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import controller as core
from ..engine.reconcile import Reconcile
from .axn import Axn

V_co = TypeVar("V_co", covariant=True)


class Controller(core.Controller[V_co]):
    """A `bonny.Controller` with `axn_class = compat.Axn`."""

    axn_class: ClassVar[type[Reconcile[Any]]] = Axn

    if TYPE_CHECKING:  # at run time, a method that a class has is a handler that it defines

        def reconcile(self, axn: Axn[V_co]) -> Awaitable[None] | None: ...  # type: ignore[override]
        def add(self, axn: Axn[V_co]) -> Awaitable[None] | None: ...  # type: ignore[override]
        def modify(self, axn: Axn[V_co]) -> Awaitable[None] | None: ...  # type: ignore[override]
        def finalize(self, axn: Axn[V_co]) -> Awaitable[None] | None: ...  # type: ignore[override]
        def delete(self, axn: Axn[V_co]) -> Awaitable[None] | None: ...  # type: ignore[override]
