"""Handled: the state of an object for comparison: equal means that no reconcile is needed.

It distinguishes a change that counts from bookkeeping of the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ..errors import InvalidObject
from .fields import digest
from .objects import UNREADABLE, Item, OwnerRef

# Not part of the content: bookkeeping, parts with a field of their own, and the type, which a list leaves out.
NO_CONTENT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


class Handled(msgspec.Struct, frozen=True, gc=False):
    """The state of an object as a reconcile saw it, to detect changes. One per object, so it is kept small."""

    uid: str
    content: int | bytes
    """The generation where the server keeps one, else a hash of the object without status and bookkeeping."""

    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None
    finalizers: tuple[str, ...]
    owners: tuple[OwnerRef, ...]
    deletion: str | None
    status: bytes = b""
    """A hash of the status, for controllers that ask for status changes."""


def handled_state(
    item: Item, *, with_status: bool, metadata_only: bool = False, trust_generation: bool = True
) -> Handled:
    """The state of `item` for comparison. Does not raise: it is asked for each object that a stream shows.

    For metadata-only objects and objects that cannot be decoded, each new version counts as new content.
    """
    meta = item.meta
    content: int | bytes = meta.generation if trust_generation else 0
    status = b""
    if metadata_only:
        # There is no status to compare either.
        content = content if content and not with_status else meta.resource_version.encode()
    elif not content or with_status:
        try:
            decoded = item.decode()
            status = digest(decoded.get("status")) if with_status else b""
            if not content:
                content = digest({name: value for name, value in decoded.items() if name not in NO_CONTENT})
        except (InvalidObject, *UNREADABLE):
            content = meta.resource_version.encode()
    return Handled(
        uid=meta.uid,
        content=content,
        labels=meta.labels,
        annotations=meta.annotations,
        finalizers=meta.finalizers,
        owners=meta.owner_references,
        deletion=meta.deletion_timestamp,
        status=status,
    )


def is_rewritten(old: Item, new: Item) -> bool:
    """Whether there is other content under an equal generation, as after a restore of the server from a backup."""
    if old.meta.uid != new.meta.uid or not 0 < old.meta.generation == new.meta.generation:
        return False
    before, after = (handled_state(item, with_status=False, trust_generation=False) for item in (old, new))
    return before.content != after.content
