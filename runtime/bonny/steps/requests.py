"""Requests: several at once, each to its end; and the deletion of children."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

from ..axn import Axn
from ..client.errors import Conflict, NotFound
from ..core.objects import Item
from ..errors import ALSO
from ..kinds import Kind

__all__ = ["delete_children", "together"]

T = TypeVar("T")


async def together(requests: Iterable[Awaitable[T]]) -> list[T]:
    """Await all, each to its end. Raises: the first error, the others as notes."""
    outcomes = await asyncio.gather(*requests, return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    try:
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"{ALSO}{other}")
            raise errors[0]
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    finally:
        # The error's traceback holds this frame. If the frame held the error, too, the whole handling would stay in
        # memory until the garbage collector comes, which is rarely.
        del outcomes, errors


async def delete_children(axn: Axn[Any], children: Iterable[tuple[Kind, Item]], *, unchanged: bool) -> None:
    """Delete each that is not going already, and only this very object; with `unchanged` only as it was seen.

    Raises: `ApiError`, not for what is gone or is not the same any more.
    """
    await together(_delete(axn, kind, child, unchanged=unchanged) for kind, child in children)


async def _delete(axn: Axn[Any], kind: Kind, child: Item, *, unchanged: bool) -> None:
    meta = child.meta
    if meta.deletion_timestamp is not None:
        return
    try:
        version = meta.resource_version if unchanged else None
        with axn.workplace.deleting(kind, child.key, meta.uid):
            await axn.client.delete(kind, child.key, uid=meta.uid, version=version)
    except (NotFound, Conflict):
        return
