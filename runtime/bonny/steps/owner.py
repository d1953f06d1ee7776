"""Owner: the handled object as the API server has it, for steps that must not trust what its stream shows.

What destroys something asks here first: a child that nobody wants in what the handler saw may be wanted by now.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..axn import Axn
from ..client.errors import NotFound
from ..controller import Controller
from ..core.ledger import handled_state
from ..core.objects import decode_item
from ..resource import Resource

__all__ = ["owner_is_as_shown", "read_owner"]


async def read_owner(axn: Axn[Any]) -> Resource | None:
    """The object, uncached; None when it is gone, or its name is that of another one. RBAC: get.

    Too deep parts are empty (`Client.get`): no step writes them, and a finalizer must run all the same.
    """
    if axn.kind is None:
        return None
    try:
        live = await axn.client.get(axn.kind, axn.key.name, namespace=axn.key.namespace or None, cut=True)
    except NotFound:
        return None
    return live if live["metadata"]["uid"] == axn.uid else None


async def owner_is_as_shown(axn: Axn[Any]) -> bool:
    """Whether the object is what the handler was shown, and not under deletion. RBAC: get.

    Its status counts where status changes count for the controller, unless this handling wrote it already.
    """
    live = await read_owner(axn)
    if live is None or axn.kind is None:
        return False
    with_status = isinstance(axn.controller, Controller) and axn.controller.on_status and axn.stored is None
    now, then = (
        handled_state(item, with_status=with_status, metadata_only=axn.kind.metadata_only)
        for item in (decode_item(msgspec.json.encode(live)), axn.shown)
    )
    return now == then and now.deletion is None
