"""Tokens: an `Axn` for a test of a step or of the axn itself; handler tests have `bonny_dev.testing.axn`."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from bonny import Controller, Kind, Resource, Scope
from bonny.core.objects import decode_item
from bonny.core.records import Action
from bonny.engine.reconcile import Reconcile
from bonny.resource import key_of

__all__ = ["token_of"]


class Untested(Controller[Any]):
    """The controller of a token that was made without one."""


def token_of(
    resource: Resource,
    *,
    action: Action = Action.RECONCILE,
    controller: Controller[Any] | None = None,
    context: object = None,
    **fields: Any,
) -> Reconcile[Any]:
    """The token of a reconcile of `resource`; `context` is what the test offers in the place of a ReconcileContext."""
    scope = Scope.NAMESPACED if key_of(resource).namespace else Scope.CLUSTER
    plural = f"{resource['kind'].lower()}s"
    controller = controller or Untested()
    return controller.axn_class(
        action=action,
        resource=resource,
        _context=cast("Any", context),
        _controller=controller,
        _kind=fields.pop("kind", None) or Kind(resource["apiVersion"], resource["kind"], plural=plural, scope=scope),
        _version=fields.pop("version", None),
        _shown=fields.pop("shown", None) or decode_item(msgspec.json.encode(resource)),
        **fields,
    )
