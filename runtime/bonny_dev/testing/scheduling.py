"""Scheduling: lets a scheduler choose a node, without a server.

assert await testing.schedule(CheapNode, pod(cpu="1"), nodes=[node("n1", cpu="4")]) == "n1"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from bonny.core.objects import Item, decode_item
from bonny.resource import Resource, key_of

if TYPE_CHECKING:
    from bonny.scheduler.scheduler import Scheduler


async def schedule(
    scheduler: type[Scheduler], pod: Resource, *, nodes: Iterable[Resource], pods: Iterable[Resource] = ()
) -> str | None:
    """The name of the node to which `scheduler` would bind `pod`; None when the pod would wait.

    It chooses among `nodes` instead of its own `nodes()`. `pods` are there already: those with a `spec.nodeName`
    take room. The choice is checked as the operator does, with its `check`.
    Raises: `AssertionError` for a choice that is not one of `nodes`; the errors of choosing.
    """
    # Loaded here: a repository may not carry the extra.
    from bonny.scheduler.assume import AssumeCache  # noqa: PLC0415
    from bonny.scheduler.choosing import select  # noqa: PLC0415
    from bonny.scheduler.nodes import Nodes  # noqa: PLC0415
    from bonny.scheduler.scheduler import check_of  # noqa: PLC0415
    from bonny.scheduler.views import PodView  # noqa: PLC0415

    cache = AssumeCache()
    for node in nodes:
        cache.see_node(node["metadata"]["name"], _stored(node))
    for other in pods:
        cache.see_pod(PodView(_stored(other)))
    made = scheduler()
    view, candidates = PodView(_stored(pod)), Nodes(cache, check_of(made))
    async with made.lifespan():
        choice = await select(made, view, candidates)
    if choice is None:
        return None
    name: str = choice["metadata"]["name"]
    chosen = candidates.named(name)
    if chosen is None:
        raise AssertionError(f"{scheduler.__name__} chose {name}, which is not one of {', '.join(cache.nodes)}")
    return name if candidates.check(view, chosen) else None


def _stored(resource: Resource) -> Item:
    """As the API server would hand it out."""
    metadata = {"uid": str(key_of(resource)), "resourceVersion": "1", **resource["metadata"]}
    return decode_item(msgspec.json.encode({**resource, "metadata": metadata}))
