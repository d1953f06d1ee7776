"""Orphans: children whose owner was deleted; `invoke doctor` reports them, and changes nothing.

An operator that does not run misses the deletion of an owner. The garbage collector removes children that have an owner
reference; the others stay until a person removes them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from bonny.client.api import Client
from bonny.client.errors import NotServed
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import MANAGED_BY, OWNER_UID, Resource, gvk_of, identify


class Orphan(NamedTuple):
    """A child that carries the UID of an owner that does not exist."""

    child: str
    """As in messages: `ConfigMap default/w1`."""

    owner_uid: str
    collected: bool
    """The child has an owner reference, so the garbage collector removes it."""


async def find_orphans(client: Client, operator: Operator) -> list[Orphan]:
    """The orphans of all namespaces, uncached. Raises: `ApiError`. RBAC: list of the handled and the owned kinds."""
    ours = f"{MANAGED_BY}={operator.name}"
    # Children first: an owner that is created in between has none of these.
    owned = _all({kind for each in operator.controllers for kind in each.owns})
    children = [child for kind in owned async for child in _listed(client, kind, ours)]
    handled = _all({kind for each in operator.controllers for kind in each.kinds(operator.group)})
    owners = [owner for kind in handled async for owner in _listed(client, kind)]
    return list(orphaned(children, owners, {(kind.group, kind.kind) for kind in handled}))


def orphaned(
    children: Iterable[Resource], owners: Iterable[Resource], handled: Collection[tuple[str, str]]
) -> Iterator[Orphan]:
    """The orphans among `children`; `owners` are all objects of the kinds `handled`, by group and kind.

    A child that refers to an owner of another kind is left out: it belongs to another operator.
    """
    uids = {owner["metadata"]["uid"] for owner in owners}
    for child in children:
        uid = (child["metadata"].get("labels") or {}).get(OWNER_UID)
        references = [each for each in child["metadata"].get("ownerReferences") or () if each["uid"] == uid]
        known = all((gvk_of(each)[0].rpartition("/")[0], each["kind"]) in handled for each in references)
        if uid is not None and uid not in uids and known:
            yield Orphan(identify(child), uid, bool(references))


def _all(kinds: Collection[Kind]) -> set[Kind]:
    """The kinds without their selections: an owner that left the selection still exists."""
    return {
        Kind(each.api_version, each.kind, plural=each.plural, scope=each.scope, metadata_only=True) for each in kinds
    }


async def _listed(client: Client, kind: Kind, labels: str = "") -> AsyncIterator[Resource]:
    with suppress(NotServed):  # no definition, no objects
        for each in await client.list(kind, label_selector=labels):
            yield {**each, "apiVersion": kind.api_version, "kind": kind.kind}
